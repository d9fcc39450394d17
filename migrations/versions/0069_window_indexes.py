"""Add indexes of budget windows by window and of grants by host, built while writers run."""

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
        op.execute("SET lock_timeout = 0")  # this wait does not block writers
        # An interrupted run leaves an invalid index, which no query uses.
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
