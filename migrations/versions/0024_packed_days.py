"""Add coarser sums of past days: quarters, weeks, and days of minutes."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_SUMS = (
    "attempts", "input_tokens", "cached_tokens", "output_tokens", "engine_us", "cost_high",
    "cost_low", "unpriced", "output_prompt", "output_square",
)  # fmt: skip
_COMPARED = ("tokens", "output_tokens", "scaled", "cost_high", "cost_low")
_MINUTES = (
    "minutes", "tokens", "output_tokens", "good_tokens", "good_output_tokens", "requests",
)  # fmt: skip


def upgrade() -> None:
    for name in ("rollup_quarters", "rollup_weeks"):
        _sums(name, _SUMS)
    for name in ("rollup_compared_quarters", "rollup_compared_weeks"):
        _sums(name, _COMPARED)
    op.create_table(
        "rollup_load_days",
        sa.Column("cell_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False, autoincrement=False),
        *(sa.Column(name, sa.LargeBinary(), nullable=False) for name in _MINUTES),
        sa.PrimaryKeyConstraint("cell_id", "start_us", name=op.f("pk_rollup_load_days")),
    )
    op.create_table(
        "rollup_packing",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("calm", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rollup_packing")),
    )


def downgrade() -> None:
    for name in (
        "rollup_packing", "rollup_load_days", "rollup_compared_weeks", "rollup_compared_quarters",
        "rollup_weeks", "rollup_quarters",
    ):  # fmt: skip
        op.drop_table(name)


def _sums(table: str, names: tuple[str, ...]) -> None:
    op.create_table(
        table,
        sa.Column("start_us", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("cell_id", sa.BigInteger(), nullable=False, autoincrement=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in names),
        sa.PrimaryKeyConstraint("start_us", "cell_id", name=op.f(f"pk_{table}")),
    )
