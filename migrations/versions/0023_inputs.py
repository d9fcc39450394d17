"""Add the exact inputs of a decision, so that it can be repeated."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decisions", sa.Column("inputs", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("decisions", "inputs")
