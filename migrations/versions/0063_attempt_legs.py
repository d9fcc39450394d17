"""Add the two parts of attempts that used a prefill engine and a decode engine."""

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt_legs",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("busy_us", sa.BigInteger(), nullable=False),
        sa.Column("kv_tokens", sa.BigInteger(), nullable=False),
        sa.Column("held_us", sa.BigInteger(), nullable=False),
        sa.Column("transfer_us", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", "position", name=op.f("pk_attempt_legs")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("attempt_legs")
