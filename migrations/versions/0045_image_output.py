"""Add the output tokens of an attempt that belong to images."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add nullable columns without defaults, so that no row is rewritten."""
    op.add_column("attempts", sa.Column("image_output_tokens", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as batch:
        batch.drop_column("image_output_tokens")
