"""Add manual entries: GPU rates, teams of projects, scenarios, currency rates."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "entered",
        sa.Column("number", number, autoincrement=True, nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("says", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_entered")),
    )
    op.create_index(op.f("ix_entered_subject_number"), "entered", ["subject", "number"])


def downgrade() -> None:
    op.drop_table("entered")
