"""Add the maker of a key, the key that it follows, and the further budgets that bind it.

Existing keys have no maker: they were made by a person who acts for their team.
"""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

COLUMNS = ("line", "makers", "counts_on", "member")


def upgrade() -> None:
    for name in COLUMNS:
        kind = sa.JSON() if name in ("makers", "counts_on") else sa.String()
        op.add_column("keys", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    for name in reversed(COLUMNS):
        op.drop_column("keys", name)
