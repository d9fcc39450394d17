"""Add the number of a batch's failed lines that were never tried."""

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("batches", sa.Column("unanswered", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("batches", "unanswered")
