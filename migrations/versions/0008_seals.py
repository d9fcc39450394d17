"""Add seals over the books, which detect any later edit."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "seals",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("sealed_us", sa.BigInteger(), nullable=False),
        sa.Column("attempts_to", sa.BigInteger(), nullable=False),
        sa.Column("postings_to", sa.BigInteger(), nullable=False),
        sa.Column("refusals_to", sa.BigInteger(), nullable=False),
        sa.Column("prices_to", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("chain", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_seals")),
    )
    op.create_table(
        "seal_marks",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("attempt_seq", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary(), nullable=True),
        sa.Column("sealed_in", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", "attempt_seq", name=op.f("pk_seal_marks")),
    )
    op.create_index(op.f("ix_seal_marks_sealed_in"), "seal_marks", ["sealed_in"])
    op.create_index(
        "ix_seal_marks_waiting",
        "seal_marks",
        ["attempt_seq"],
        sqlite_where=sa.text("sealed_in IS NULL"),
        postgresql_where=sa.text("sealed_in IS NULL"),
    )


def downgrade() -> None:
    op.drop_table("seal_marks")
    op.drop_table("seals")
