"""Add hourly values of engine samples, which a month's chart shows."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "engine_sample_hours",
        sa.Column("hour_us", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("kv_usage_ppm", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("hour_us", "engine", name=op.f("pk_engine_sample_hours")),
    )


def downgrade() -> None:
    op.drop_table("engine_sample_hours")
