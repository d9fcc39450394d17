"""Add encrypted answers that are stored for an idempotency key."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kept_answers",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "name", name=op.f("pk_kept_answers")),
    )
    op.create_index(op.f("ix_kept_answers_expires_us_size"), "kept_answers", ["expires_us", "size"])


def downgrade() -> None:
    op.drop_table("kept_answers")
