"""Add the booked cost of retired attempts, for invoices of their days.

Attempts that were retired before have no rows here: their cost is read from their postings.
"""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0050"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retired_bookings",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("part", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("line", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("upstream_model", sa.String(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("sure_pusd", WideInteger, nullable=False),
        sa.Column("uncertain_pusd", WideInteger, nullable=False),
        sa.Column("claimed_pusd", WideInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", "part", "line", name=op.f("pk_retired_bookings")),
    )
    op.create_index(
        op.f("ix_retired_bookings_provider_start_us"),
        "retired_bookings",
        ["provider", "start_us"],
    )


def downgrade() -> None:
    op.drop_table("retired_bookings")
