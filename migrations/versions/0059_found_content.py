"""What detectors found in a request, and what was done: kinds and counts."""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0057"
branch_labels = None
depends_on = None

TABLES = ("attempts", "refusals")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("content", sa.String(), nullable=True))


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_column(table, "content")
