"""Add the charge that an invoice line is a share of, and the bookings of a retirement.

Lines imported before name no charge, and parts that were retired before have no bookings.
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("retirements", sa.Column("bookings", sa.LargeBinary(), nullable=True))
    op.add_column("invoice_items", sa.Column("charge", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("invoice_items", "charge")
    op.drop_column("retirements", "bookings")
