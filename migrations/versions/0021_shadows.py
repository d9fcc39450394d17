"""Add the decision of a shadow policy next to the decision that is executed."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

NAMES = ("shadow_policy", "shadow_target", "shadow_reason")


def upgrade() -> None:
    for name in NAMES:
        op.add_column("decisions", sa.Column(name, sa.String(), nullable=True))


def downgrade() -> None:
    for name in reversed(NAMES):
        op.drop_column("decisions", name)
