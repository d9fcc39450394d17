"""An attempt keeps what it is charged for beside tokens: milliseconds of sound, searches."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nullable and without a default: no row is rewritten, however many there are."""
    op.add_column("attempts", sa.Column("audio_ms", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("searches", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as batch:
        batch.drop_column("searches")
        batch.drop_column("audio_ms")
