"""Add the sums that replace retired attempts."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retirements",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("part", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("ends", sa.Boolean(), nullable=False),
        sa.Column("retired_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("posted", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("engine_us", sa.BigInteger(), nullable=False),
        sa.Column("cost_pusd", WideInteger, nullable=False),
        sa.Column("gone", sa.LargeBinary(), nullable=False),
        sa.Column("left_rows", sa.BigInteger(), nullable=False),
        sa.Column("left", sa.LargeBinary(), nullable=False),
        sa.Column("chain", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", "part", name=op.f("pk_retirements")),
    )
    op.create_table(
        "retired_use",
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("hour_us", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("engine_us", sa.BigInteger(), nullable=False),
        sa.Column("charged_pusd", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pool", "hour_us", "team_id", name=op.f("pk_retired_use")),
    )


def downgrade() -> None:
    """Drop the sums; retired attempts are not restored."""
    op.drop_table("retired_use")
    op.drop_table("retirements")
