"""Add requests that were answered with an earlier answer, and the cost that this avoided."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Json, Serial

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cache_hits",
        sa.Column("seq", Serial, autoincrement=True, nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("hit_us", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("org_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("answered_by", sa.String(), nullable=False),
        sa.Column("age_us", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("avoided_pusd", sa.BigInteger(), nullable=True),
        sa.Column("engine_us", sa.BigInteger(), nullable=False),
        sa.Column("tags", Json, nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_cache_hits")),
        sa.UniqueConstraint("request_id", name=op.f("uq_cache_hits_request_id")),
    )
    op.create_index(op.f("ix_cache_hits_hit_us"), "cache_hits", ["hit_us"])


def downgrade() -> None:
    op.drop_index(op.f("ix_cache_hits_hit_us"), table_name="cache_hits")
    op.drop_table("cache_hits")
