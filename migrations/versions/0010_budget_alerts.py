"""Add budget thresholds that were reached."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget_alerts",
        sa.Column("budget_id", sa.String(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("threshold_ppm", sa.Integer(), nullable=False),
        sa.Column("spent_pusd", WideInteger(), nullable=False),
        sa.Column("limit_pusd", WideInteger(), nullable=False),
        sa.Column("reached_us", sa.BigInteger(), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("told_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint(
            "budget_id", "window", "threshold_ppm", name=op.f("pk_budget_alerts")
        ),
    )


def downgrade() -> None:
    op.drop_table("budget_alerts")
