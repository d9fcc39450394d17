"""Add damage found in journals, and the number of each journal's next frame.

Earlier versions leave the number at 0, because the frames of their journals have no numbers.
"""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import WideInteger

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "journal_positions",
        sa.Column("sequence", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
    )
    op.create_table(
        "journal_findings",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("journal", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("segment", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("after", sa.BigInteger(), nullable=False),
        sa.Column("missing", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at_most_pusd", WideInteger(), nullable=True),
        sa.Column("budgets_pusd", WideInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_journal_findings")),
        sa.UniqueConstraint(
            "journal", "segment", "offset", name=op.f("uq_journal_findings_journal_segment_offset")
        ),
    )


def downgrade() -> None:
    op.drop_table("journal_findings")
    op.drop_column("journal_positions", "sequence")
