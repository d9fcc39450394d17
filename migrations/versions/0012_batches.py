"""Add files of clients, and the batches made from them."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Json

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_TIMES = (
    "in_progress_us", "finalizing_us", "completed_us", "failed_us", "expired_us",
    "cancelling_us", "cancelled_us",
)  # fmt: skip


def upgrade() -> None:
    _create_files()
    _create_batches()
    _create_batch_lines()


def downgrade() -> None:
    op.drop_table("batch_lines")
    op.drop_table("batches")
    op.drop_table("file_chunks")
    op.drop_table("files")


def _create_files() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("filename", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
    )
    op.create_index(op.f("ix_files_team_id_id"), "files", ["team_id", "id"])
    op.create_index(op.f("ix_files_expires_us"), "files", ["expires_us"])
    op.create_table(
        "file_chunks",
        sa.Column("file_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["files.id"], name=op.f("fk_file_chunks_file_id_files"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("file_id", "number", name=op.f("pk_file_chunks")),
    )


def _create_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("completion_window", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("input_file_id", sa.String(), nullable=False),
        sa.Column("output_file_id", sa.String(), nullable=True),
        sa.Column("error_file_id", sa.String(), nullable=True),
        sa.Column("output_seconds", sa.BigInteger(), nullable=True),
        sa.Column("errors", Json, nullable=True),
        sa.Column("metadata", Json, nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("total", "completed")),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in _TIMES),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("lease_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
    )
    op.create_index(op.f("ix_batches_team_id_id"), "batches", ["team_id", "id"])
    op.create_index(op.f("ix_batches_status"), "batches", ["status"])


def _create_batch_lines() -> None:
    op.create_table(
        "batch_lines",
        sa.Column("batch_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("custom_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_us", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("lease_us", sa.BigInteger(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=True),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["batch_id"],
            ["batches.id"],
            name=op.f("fk_batch_lines_batch_id_batches"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("batch_id", "number", name=op.f("pk_batch_lines")),
    )
    op.create_index(
        op.f("ix_batch_lines_state_model_batch_id_number"),
        "batch_lines",
        ["state", "model", "batch_id", "number"],
    )
