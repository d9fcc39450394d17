"""Add claims: amounts that targets reported beyond an attempt's hold."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "claims",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("settled_us", sa.BigInteger(), nullable=False),
        sa.Column("booked_pusd", sa.BigInteger(), nullable=False),
        sa.Column("claimed_pusd", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_claims")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_claims_settled_us"), "claims", ["settled_us"])


def downgrade() -> None:
    op.drop_index(op.f("ix_claims_settled_us"), table_name="claims")
    op.drop_table("claims")
