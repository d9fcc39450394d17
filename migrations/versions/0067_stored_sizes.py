"""Add an index that sums the sizes of stored objects by team, built while writers run."""

from alembic import op

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None

NAME, TABLE, COLUMNS = "ix_stored_objects_team_id_size", "stored_objects", ["team_id", "size"]


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        _make()
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")  # this wait does not block writers
        # An interrupted run leaves an invalid index, which no query uses.
        op.drop_index(NAME, TABLE, if_exists=True, postgresql_concurrently=True)
        _make()
        op.execute("SET lock_timeout = '100ms'")


def _make() -> None:
    op.create_index(NAME, TABLE, COLUMNS, postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index(NAME, TABLE)
