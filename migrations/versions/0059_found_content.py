"""Add the content that detectors found in a request, by kind and count, and the action."""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

TABLES = ("attempts", "refusals")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("content", sa.String(), nullable=True))


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_column(table, "content")
