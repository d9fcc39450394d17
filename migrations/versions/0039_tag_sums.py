"""Add rollups of attempts' tags by hour and day, and the time from which they count."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0037"
branch_labels = None
depends_on = None

_SUMS = ("attempts", "input_tokens", "output_tokens", "cost_high", "cost_low")


def upgrade() -> None:
    op.create_table(
        "rollup_tags",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True,
            nullable=False,
        ),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("tags", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollup_tags")),
        sa.UniqueConstraint("key", name=op.f("uq_rollup_tags_key")),
    )  # fmt: skip
    for table in ("rollup_tag_hours", "rollup_tag_days"):
        op.create_table(
            table,
            sa.Column("start_us", sa.BigInteger(), nullable=False, autoincrement=False),
            sa.Column("cell_id", sa.BigInteger(), nullable=False, autoincrement=False),
            *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _SUMS),
            sa.PrimaryKeyConstraint("start_us", "cell_id", name=op.f(f"pk_{table}")),
        )
    op.create_table(
        "rollup_tagging",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("since_seq", sa.BigInteger(), nullable=False),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rollup_tagging")),
    )


def downgrade() -> None:
    for name in ("rollup_tagging", "rollup_tag_days", "rollup_tag_hours", "rollup_tags"):
        op.drop_table(name)
