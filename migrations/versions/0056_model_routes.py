"""Add the further targets of each model, at which the verdict prices moved traffic."""

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_routes",
        sa.Column("model", sa.String(), primary_key=True),
        sa.Column("residency", sa.String(), nullable=False),
        sa.Column("apis", sa.JSON(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("model_routes")
