"""Add idempotency keys, and the requests that they stand for."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "submissions",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "name", name=op.f("pk_submissions")),
    )
    op.create_index(op.f("ix_submissions_expires_us"), "submissions", ["expires_us"])


def downgrade() -> None:
    op.drop_table("submissions")
