"""Add an index of attempts by request, built while writers run."""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

NAME = "ix_attempts_request_id"


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        _make()
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")  # this wait does not block writers
        # An interrupted run leaves an invalid index, which no query uses.
        op.drop_index(NAME, "attempts", if_exists=True, postgresql_concurrently=True)
        _make()
        op.execute("SET lock_timeout = '100ms'")


def _make() -> None:
    op.create_index(NAME, "attempts", ["request_id"], postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index(NAME, "attempts")
