"""Add charges of an attempt other than tokens: milliseconds of sound, searches."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add nullable columns without defaults, so that no row is rewritten."""
    op.add_column("attempts", sa.Column("audio_ms", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("searches", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as batch:
        batch.drop_column("searches")
        batch.drop_column("audio_ms")
