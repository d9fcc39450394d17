"""Add to a window the highest limit that its grants were made under."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("budget_windows") as batch:
        batch.add_column(sa.Column("limit_pusd", WideInteger(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("budget_windows") as batch:
        batch.drop_column("limit_pusd")
