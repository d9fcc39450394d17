"""An attempt keeps the characters that were spoken for it, and the pictures that were made."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nullable and without a default: no row is rewritten, however many there are."""
    op.add_column("attempts", sa.Column("characters", sa.Integer(), nullable=True))
    op.add_column("attempts", sa.Column("pictures", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as batch:
        batch.drop_column("pictures")
        batch.drop_column("characters")
