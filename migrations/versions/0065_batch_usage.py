"""Add the usage that the answers of a batch report."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Json

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("batches", sa.Column("usage", Json, nullable=True))


def downgrade() -> None:
    op.drop_column("batches", "usage")
