"""Add rollups of attempts by hour and day."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Serial

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_SUMS = (
    "attempts", "input_tokens", "cached_tokens", "output_tokens", "engine_us", "cost_high",
    "cost_low", "unpriced", "output_prompt", "output_square",
)  # fmt: skip
_COMPARED = ("tokens", "output_tokens", "scaled", "cost_high", "cost_low")


def upgrade() -> None:
    op.create_table(
        "rollup_position",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rollup_position")),
    )
    op.create_table(
        "rollup_waiting",
        sa.Column("attempt_seq", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_seq", name=op.f("pk_rollup_waiting")),
    )
    op.create_index(op.f("ix_rollup_waiting_opened_us"), "rollup_waiting", ["opened_us"])
    _names(
        "rollup_cells",
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=True),
        sa.Column("spill_reason", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=True),
        sa.Column("slo_met", sa.Boolean(), nullable=True),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("flag", sa.String(), nullable=True),
    )
    _names(
        "rollup_comparisons",
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=True),
        sa.Column("spill_reason", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=True),
        sa.Column("slo_met", sa.Boolean(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("comparator", sa.String(), nullable=False),
    )
    _names(
        "rollup_loads",
        sa.Column("team_id", sa.String(), nullable=True),
        sa.Column("pool", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
    )
    for name in ("rollup_hours", "rollup_days"):
        _sums(name, _SUMS)
    for name in ("rollup_compared_hours", "rollup_compared_days"):
        _sums(name, _COMPARED)
    op.create_table(
        "rollup_load_hours",
        sa.Column("cell_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("minutes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("cell_id", "start_us", name=op.f("pk_rollup_load_hours")),
    )


def downgrade() -> None:
    for name in (
        "rollup_load_hours", "rollup_compared_days", "rollup_compared_hours", "rollup_days",
        "rollup_hours", "rollup_loads", "rollup_comparisons", "rollup_cells", "rollup_waiting",
        "rollup_position",
    ):  # fmt: skip
        op.drop_table(name)


def _names(table: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        table,
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sa.UniqueConstraint("key", name=op.f(f"uq_{table}_key")),
    )


def _sums(table: str, names: tuple[str, ...]) -> None:
    op.create_table(
        table,
        sa.Column("start_us", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("cell_id", sa.BigInteger(), nullable=False, autoincrement=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in names),
        sa.PrimaryKeyConstraint("start_us", "cell_id", name=op.f(f"pk_{table}")),
    )
