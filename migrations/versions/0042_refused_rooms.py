"""Add a budget's remaining amount at a refusal, and the time a request was queued."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

NAMES = ("bound_pusd", "room_pusd", "limit_pusd", "since_us", "until_us")


def upgrade() -> None:
    for name in NAMES:
        op.add_column("refusals", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("decisions", sa.Column("line_us", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("decisions", "line_us")
    for name in reversed(NAMES):
        op.drop_column("refusals", name)
