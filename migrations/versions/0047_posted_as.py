"""How an invoice was posted: whether it says all that is owed for its days, or a part.

Of those that were posted before, it is not known: a part was posted where others share its days.
"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("invoices", sa.Column("posted_as", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("invoices", "posted_as")
