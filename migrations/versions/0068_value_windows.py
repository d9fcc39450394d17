"""Whose value of a tag a budget's window is."""

import sqlalchemy as sa
from alembic import op

revision = "0068"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("budget_windows", sa.Column("team_id", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("budget_windows", "team_id")
