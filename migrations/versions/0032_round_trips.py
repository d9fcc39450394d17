"""Add the round-trip time to each engine, one row for each change."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "round_trips",
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rtt_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("engine", "at_us", name=op.f("pk_round_trips")),
    )


def downgrade() -> None:
    op.drop_table("round_trips")
