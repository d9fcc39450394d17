"""Add the minutes by which an invoice's days are ahead of UTC. Null means UTC days."""

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
