"""Add the balances that replace condensed holds, postings and refusals."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retired_holds",
        sa.Column("budget_id", sa.String(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("holds", sa.BigInteger(), nullable=False),
        sa.Column("actual_pusd", WideInteger(), nullable=False),
        sa.PrimaryKeyConstraint("budget_id", "window", name=op.f("pk_retired_holds")),
    )
    numbers = ("first_link", "last_link", "condensed_us", "entries", "postings", "refusals")
    op.create_table(
        "condensings",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in numbers),
        sa.Column("gone", sa.LargeBinary(), nullable=False),
        sa.Column("left_rows", sa.BigInteger(), nullable=False),
        sa.Column("left", sa.LargeBinary(), nullable=False),
        sa.Column("chain", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_condensings")),
    )
    op.create_table(
        "condensed_postings",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("line", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("day_us", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("amount_pusd", WideInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", "line", name=op.f("pk_condensed_postings")),
    )
    op.create_index(
        op.f("ix_condensed_postings_account_day_us"), "condensed_postings", ["account", "day_us"]
    )
    names = ("org_id", "team_id", "model", "policy", "reason")
    op.create_table(
        "condensed_refusals",
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("line", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("hour_us", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in names),
        sa.Column("http_status", sa.Integer(), nullable=False),
        sa.Column("scope", sa.String(), nullable=True),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", "line", name=op.f("pk_condensed_refusals")),
    )
    op.create_index(op.f("ix_condensed_refusals_hour_us"), "condensed_refusals", ["hour_us"])


def downgrade() -> None:
    for name in ("condensed_refusals", "condensed_postings", "condensings", "retired_holds"):
        op.drop_table(name)
