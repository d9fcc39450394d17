"""Add operators' overrides of policies."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "overrides",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("says", sa.String(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=True),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_overrides")),
    )


def downgrade() -> None:
    op.drop_table("overrides")
