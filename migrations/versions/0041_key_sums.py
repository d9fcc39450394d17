"""Add rollups of attempts by team, key and backend, by hour and day."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

_SUMS = ("attempts", "input_tokens", "output_tokens", "cost_high", "cost_low", "unpriced")


def upgrade() -> None:
    op.create_table(
        "rollup_keys",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True,
            nullable=False,
        ),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollup_keys")),
        sa.UniqueConstraint("key", name=op.f("uq_rollup_keys_key")),
    )  # fmt: skip
    for table in ("rollup_key_hours", "rollup_key_days"):
        op.create_table(
            table,
            sa.Column("start_us", sa.BigInteger(), nullable=False, autoincrement=False),
            sa.Column("cell_id", sa.BigInteger(), nullable=False, autoincrement=False),
            *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _SUMS),
            sa.PrimaryKeyConstraint("start_us", "cell_id", name=op.f(f"pk_{table}")),
        )


def downgrade() -> None:
    for name in ("rollup_key_days", "rollup_key_hours", "rollup_keys"):
        op.drop_table(name)
