"""Add a hash-chained log of contracts, price imports, policies and keys."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "register_entries",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("register", sa.String(), nullable=False),
        sa.Column("row", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("before", sa.BigInteger(), nullable=True),
        sa.Column("said", sa.JSON(), nullable=False),
        sa.Column("leaf", sa.LargeBinary(), nullable=False),
        sa.Column("chain", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_register_entries")),
        sa.UniqueConstraint(
            "register", "row", "event", name=op.f("uq_register_entries_register_row_event")
        ),
    )


def downgrade() -> None:
    op.drop_table("register_entries")
