"""Add the tags that the lines of a batch name."""

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0069"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("batches", sa.Column("tags", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("batches", "tags")
