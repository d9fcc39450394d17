"""By how many minutes the days of an invoice are ahead of UTC's; none: these are its days."""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("invoices", sa.Column("utc_offset_min", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("invoices", "utc_offset_min")
