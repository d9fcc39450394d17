"""Add the characters that were spoken for an attempt, and the images that were made."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add nullable columns without defaults, so that no row is rewritten."""
    op.add_column("attempts", sa.Column("characters", sa.Integer(), nullable=True))
    op.add_column("attempts", sa.Column("pictures", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as batch:
        batch.drop_column("pictures")
        batch.drop_column("characters")
