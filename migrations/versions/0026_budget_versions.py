"""Add versions of budgets. Each start records the active ones."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "budget_versions",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("budget_id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("period", sa.String(), nullable=False),
        sa.Column("limit_pusd", WideInteger(), nullable=False),
        sa.Column("hard", sa.Boolean(), nullable=False),
        sa.Column("timezone", sa.String(), nullable=False),
        sa.Column("retired_us", sa.BigInteger(), nullable=True),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_budget_versions")),
    )
    op.create_index(
        op.f("ix_budget_versions_budget_id_seq"), "budget_versions", ["budget_id", "seq"]
    )


def downgrade() -> None:
    op.drop_table("budget_versions")
