"""Add imported invoices, line by line."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Serial, WideInteger

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "invoices",
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("party", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("first_day", sa.Date(), nullable=False),
        sa.Column("last_day", sa.Date(), nullable=False),
        sa.Column("total_pusd", WideInteger(), nullable=False),
        sa.Column("imported_us", sa.BigInteger(), nullable=False),
        sa.Column("imported_by", sa.String(), nullable=False),
        sa.Column("posted_us", sa.BigInteger(), nullable=True),
        sa.Column("posted_by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invoices")),
        sa.UniqueConstraint("digest", name=op.f("uq_invoices_digest")),
    )
    op.create_table(
        "invoice_items",
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("invoice_id", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("amount_pusd", sa.BigInteger(), nullable=False),
        sa.Column("quantity", sa.String(), nullable=True),
        sa.Column("unit", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invoice_items")),
    )
    op.create_index(op.f("ix_invoice_items_invoice_id_day"), "invoice_items", ["invoice_id", "day"])


def downgrade() -> None:
    op.drop_table("invoice_items")
    op.drop_table("invoices")
