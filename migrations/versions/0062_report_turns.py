"""Add scheduled reports: one row for each period and destination."""

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "report_turns",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("place", sa.String(), primary_key=True),
        sa.Column("start_us", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("due_us", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("told_us", sa.BigInteger(), nullable=True),
    )


def downgrade() -> None:
    op.drop_table("report_turns")
