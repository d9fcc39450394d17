"""Add annexes of seals, and sums of cache hits that were deleted."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0066"
down_revision = "0065"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "seal_annexes",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("chain", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_seal_annexes")),
    )
    op.create_index(op.f("ix_seal_annexes_kind_number"), "seal_annexes", ["kind", "number"])
    op.create_table(
        "condensed_hits",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("line", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hour_us", sa.BigInteger(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("hits", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.BigInteger(), nullable=False),
        sa.Column("avoided_pusd", WideInteger(), nullable=False),
        sa.Column("engine_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", "line", name=op.f("pk_condensed_hits")),
    )
    op.create_index(op.f("ix_condensed_hits_hour_us"), "condensed_hits", ["hour_us"])


def downgrade() -> None:
    op.drop_index(op.f("ix_condensed_hits_hour_us"), table_name="condensed_hits")
    op.drop_table("condensed_hits")
    op.drop_index(op.f("ix_seal_annexes_kind_number"), table_name="seal_annexes")
    op.drop_table("seal_annexes")
