"""Add an index of batch lines that no provider's batch takes, built while writers run."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

NAME, TABLE, COLUMNS = "ix_batch_lines_kept", "batch_lines", ["batch_id", "number"]


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        op.create_index(NAME, TABLE, COLUMNS, sqlite_where=sa.text("kept = 1"))
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")  # this wait does not block writers
        # An interrupted run leaves an invalid index, which no query uses.
        op.drop_index(NAME, TABLE, if_exists=True, postgresql_concurrently=True)
        op.create_index(
            NAME, TABLE, COLUMNS, postgresql_where=sa.text("kept"), postgresql_concurrently=True
        )
        op.execute("SET lock_timeout = '100ms'")


def downgrade() -> None:
    op.drop_index(NAME, TABLE)
