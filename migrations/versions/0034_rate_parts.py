"""Add rate limits per minute that hosts share: live hosts, and each host's part."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rate_hosts",
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("renewed_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("holder", name=op.f("pk_rate_hosts")),
    )
    op.create_table(
        "rate_accounts",
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rate_accounts")),
    )
    op.create_table(
        "rate_parts",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("limit_requests", sa.BigInteger(), nullable=True),
        sa.Column("limit_tokens", sa.BigInteger(), nullable=True),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("kept_requests", sa.BigInteger(), nullable=False),
        sa.Column("kept_tokens", sa.BigInteger(), nullable=False),
        sa.Column("wanted_requests", sa.BigInteger(), nullable=False),
        sa.Column("wanted_tokens", sa.BigInteger(), nullable=False),
        sa.Column("wanted_us", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", "holder", name=op.f("pk_rate_parts")),
    )
    op.create_index(
        "ix_rate_parts_wanted",
        "rate_parts",
        ["name"],
        unique=False,
        sqlite_where=sa.text("wanted_us IS NOT NULL"),
        postgresql_where=sa.text("wanted_us IS NOT NULL"),
    )
    op.create_index(op.f("ix_rate_parts_holder"), "rate_parts", ["holder"], unique=False)


def downgrade() -> None:
    op.drop_table("rate_parts")
    op.drop_table("rate_accounts")
    op.drop_table("rate_hosts")
