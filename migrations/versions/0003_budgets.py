"""Add limits on spend: budgets, windows, grants, holds."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_budget_windows()
    _create_budgets()
    _create_grants()
    _create_holds()


def downgrade() -> None:
    op.drop_table("holds")
    op.drop_table("grants")
    op.drop_table("budgets")
    op.drop_table("budget_windows")


def _create_budget_windows() -> None:
    op.create_table(
        "budget_windows",
        sa.Column("budget_id", sa.String(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("spent_pusd", WideInteger(), nullable=False),
        sa.Column("granted_pusd", WideInteger(), nullable=False),
        sa.PrimaryKeyConstraint("budget_id", "window", name=op.f("pk_budget_windows")),
    )


def _create_budgets() -> None:
    op.create_table(
        "budgets",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("period", sa.String(), nullable=False),
        sa.Column("limit_pusd", WideInteger(), nullable=False),
        sa.Column("hard", sa.Boolean(), nullable=False),
        sa.Column("timezone", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("retired_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budgets")),
    )


def _create_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("budget_id", sa.String(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("granted_pusd", WideInteger(), nullable=False),
        sa.Column("spent_pusd", WideInteger(), nullable=False),
        sa.PrimaryKeyConstraint("budget_id", "window", "host", name=op.f("pk_grants")),
    )


def _create_holds() -> None:
    op.create_table(
        "holds",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("budget_id", sa.String(), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=False),
        sa.Column("amount_pusd", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("actual_pusd", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("attempt_id", "budget_id", name=op.f("pk_holds")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_holds_held",
        "holds",
        ["budget_id", "window"],
        sqlite_where=sa.text("state = 'held'"),
        postgresql_where=sa.text("state = 'held'"),
    )
