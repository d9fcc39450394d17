"""Add the billable part of a claim, its effect on budgets, and its resolution.

Existing claims have no billable part: it is unknown, so they do not reduce a budget.
"""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("claims", sa.Column("plausible_pusd", sa.BigInteger(), nullable=True))
    op.add_column(
        "claims",
        sa.Column("counted_pusd", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
    )
    op.add_column("claims", sa.Column("resolution", sa.String(), nullable=True))
    op.add_column("claims", sa.Column("resolved_us", sa.BigInteger(), nullable=True))
    op.add_column("claims", sa.Column("resolved_by", sa.String(), nullable=True))
    zero = sa.text("'0'")
    op.add_column(
        "budget_windows",
        sa.Column("claimed_pusd", WideInteger(), nullable=False, server_default=zero),
    )


def downgrade() -> None:
    op.drop_column("budget_windows", "claimed_pusd")
    for name in ("resolved_by", "resolved_us", "resolution", "counted_pusd", "plausible_pusd"):
        op.drop_column("claims", name)
