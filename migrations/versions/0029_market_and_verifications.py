"""Add GPUs that can be bought or rented, and the results of `ledger verify`."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gpu_types",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("vendor", sa.String(), nullable=False),
        sa.Column("memory_gib", sa.Integer(), nullable=False),
        sa.Column("bandwidth_bytes_s", sa.BigInteger(), nullable=False),
        sa.Column("low_pusd_per_hour", sa.BigInteger(), nullable=True),
        sa.Column("high_pusd_per_hour", sa.BigInteger(), nullable=True),
        sa.Column("price_source", sa.String(), nullable=True),
        sa.Column("price_seen", sa.Date(), nullable=True),
        sa.Column("serving", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_gpu_types")),
    )
    op.create_table(
        "verifications",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("checks", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("findings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=False),
        sa.Column("disputed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verifications")),
    )


def downgrade() -> None:
    op.drop_table("verifications")
    op.drop_table("gpu_types")
