"""Indexes by which budgets' windows and grants of a moment are found, made beside writers."""

from alembic import op

revision = "0069"
down_revision = "0068"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_budget_windows_window_team_id_budget_id", "budget_windows",
     ["window", "team_id", "budget_id"]),
    ("ix_grants_host_window", "grants", ["host", "window"]),
)  # fmt: skip


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        _make()
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")  # waits for writers without being in their way
        # What a run that was interrupted left is invalid, and no query uses it.
        for name, table, _ in INDEXES:
            op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        _make()
        op.execute("SET lock_timeout = '100ms'")


def _make() -> None:
    for name, table, columns in INDEXES:
        op.create_index(name, table, columns, postgresql_concurrently=True)


def downgrade() -> None:
    for name, table, _ in INDEXES:
        op.drop_index(name, table)
