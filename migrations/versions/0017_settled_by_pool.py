"""Add an index for attempts that settled in a pool's open hour, built while writers run."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_attempts_pool_settled_us", ["pool", "settled_us"], "pool IS NOT NULL"),
    ("ix_attempts_flag_opened_us", ["flag", "opened_us"], "flag IS NOT NULL"),
    ("ix_attempts_spill_reason_opened_us", ["spill_reason", "opened_us"],
     "spill_reason IS NOT NULL"),
)  # fmt: skip


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        for name, columns, where in INDEXES:
            op.create_index(name, "attempts", columns, sqlite_where=sa.text(where))
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")  # this wait does not block writers
        for name, columns, where in INDEXES:
            # An interrupted run leaves an invalid index, which no query uses.
            op.drop_index(name, "attempts", if_exists=True, postgresql_concurrently=True)
            op.create_index(
                name, "attempts", columns, postgresql_where=sa.text(where),
                postgresql_concurrently=True,
            )  # fmt: skip
        op.execute("SET lock_timeout = '100ms'")


def downgrade() -> None:
    for name, _, _ in INDEXES:
        op.drop_index(name, "attempts")
