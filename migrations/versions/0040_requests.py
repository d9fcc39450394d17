"""An index by which the tries of one request are found: made beside running writers."""

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
        op.execute("SET lock_timeout = 0")  # waits for writers without being in their way
        # What a run that was interrupted left is invalid, and no query uses it.
        op.drop_index(NAME, "attempts", if_exists=True, postgresql_concurrently=True)
        _make()
        op.execute("SET lock_timeout = '100ms'")


def _make() -> None:
    op.create_index(NAME, "attempts", ["request_id"], postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index(NAME, "attempts")
