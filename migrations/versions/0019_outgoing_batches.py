"""Add batch lines that were submitted to a provider as its batch."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Json

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column with a constant default, so that PostgreSQL rewrites no row."""
    op.add_column(
        "batch_lines",
        sa.Column("kept", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "outgoing_batches",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("batch_id", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("upstream_model", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("next_us", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("marked_us", sa.BigInteger(), nullable=True),
        sa.Column("cancel_us", sa.BigInteger(), nullable=True),
        sa.Column("input_file_id", sa.String(), nullable=True),
        sa.Column("remote_id", sa.String(), nullable=True),
        sa.Column("output_file_id", sa.String(), nullable=True),
        sa.Column("error_file_id", sa.String(), nullable=True),
        sa.Column("why", sa.String(), nullable=True),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("lease_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outgoing_batches")),
    )
    op.create_index(op.f("ix_outgoing_batches_state"), "outgoing_batches", ["state"])
    op.create_table(
        "outgoing_lines",
        sa.Column("outgoing_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("custom_id", sa.String(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("terms", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["outgoing_id"],
            ["outgoing_batches.id"],
            name=op.f("fk_outgoing_lines_outgoing_id_outgoing_batches"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("outgoing_id", "number", name=op.f("pk_outgoing_lines")),
    )


def downgrade() -> None:
    op.drop_table("outgoing_lines")
    op.drop_table("outgoing_batches")
    with op.batch_alter_table("batch_lines") as lines:
        lines.drop_column("kept")
