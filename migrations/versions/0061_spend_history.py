"""Add the daily spending of another gateway. It is not part of the books."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "spend_history",
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("org", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("spend_pusd", WideInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "day", "cell", name=op.f("pk_spend_history")),
    )
    op.create_index(op.f("ix_spend_history_day"), "spend_history", ["day"])


def downgrade() -> None:
    op.drop_index(op.f("ix_spend_history_day"), table_name="spend_history")
    op.drop_table("spend_history")
