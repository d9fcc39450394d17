"""Add the register of made, rotated and revoked keys."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "key_changes",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("ends_us", sa.BigInteger(), nullable=True),
        sa.Column("successor", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_key_changes")),
    )
    op.create_index(op.f("ix_key_changes_key_id_seq"), "key_changes", ["key_id", "seq"])


def downgrade() -> None:
    op.drop_table("key_changes")
