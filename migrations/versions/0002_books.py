"""Add the books: attempts, decisions, postings, price versions, journal positions."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Json, Serial

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_attempts()
    _create_compared()
    _create_config_versions()
    _create_decisions()
    _create_journal_positions()
    _create_postings()
    _create_price_versions()
    _create_quarantine()
    _create_refusals()


def downgrade() -> None:
    op.drop_table("refusals")
    op.drop_table("quarantine")
    op.drop_table("price_versions")
    op.drop_table("postings")
    op.drop_table("journal_positions")
    op.drop_table("decisions")
    op.drop_table("config_versions")
    op.drop_table("compared")
    op.drop_table("attempts")


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("seq", Serial, autoincrement=True, nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("attempt_no", sa.Integer(), nullable=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("org_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=True),
        sa.Column("engine", sa.String(), nullable=True),
        sa.Column("provider", sa.String(), nullable=True),
        sa.Column("upstream_model", sa.String(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("policy_version", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("spill_reason", sa.String(), nullable=True),
        sa.Column("price_version", sa.BigInteger(), nullable=True),
        sa.Column("bound_pusd", sa.BigInteger(), nullable=False),
        sa.Column("prompt_tokens_estimate", sa.Integer(), nullable=False),
        sa.Column("ttft_predicted_us", sa.BigInteger(), nullable=True),
        sa.Column("kv_headroom_ppm", sa.Integer(), nullable=True),
        sa.Column("bid_price_pusd_per_s", sa.BigInteger(), nullable=True),
        sa.Column("tags", Json, nullable=True),
        sa.Column("journal", sa.String(), nullable=False),
        sa.Column("settled_us", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_write_1h_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("audio_input_tokens", sa.Integer(), nullable=True),
        sa.Column("audio_output_tokens", sa.Integer(), nullable=True),
        sa.Column("basis", sa.String(), nullable=True),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=True),
        sa.Column("ttft_us", sa.BigInteger(), nullable=True),
        sa.Column("duration_us", sa.BigInteger(), nullable=True),
        sa.Column("engine_us", sa.BigInteger(), nullable=True),
        sa.Column("finish_reason", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("slo_met", sa.Boolean(), nullable=True),
        sa.Column("flag", sa.String(), nullable=True),
        sa.Column("compared_with", sa.String(), nullable=True),
        sa.Column("compared_pusd", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_attempts")),
        sa.UniqueConstraint("attempt_id", name=op.f("uq_attempts_attempt_id")),
    )
    op.create_index(op.f("ix_attempts_model_opened_us"), "attempts", ["model", "opened_us"])
    op.create_index(op.f("ix_attempts_opened_us"), "attempts", ["opened_us"])
    op.create_index(op.f("ix_attempts_target_opened_us"), "attempts", ["target", "opened_us"])
    op.create_index(op.f("ix_attempts_team_id_opened_us"), "attempts", ["team_id", "opened_us"])
    op.create_index(
        "ix_attempts_unsettled",
        "attempts",
        ["journal"],
        sqlite_where=sa.text("settled_us IS NULL"),
        postgresql_where=sa.text("settled_us IS NULL"),
    )


def _create_compared() -> None:
    op.create_table(
        "compared",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("comparator", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("price_version", sa.BigInteger(), nullable=False),
        sa.Column("ratio_ppm", sa.Integer(), nullable=False),
        sa.Column("cost_pusd", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", "comparator", name=op.f("pk_compared")),
        sqlite_with_rowid=False,
    )


def _create_config_versions() -> None:
    op.create_table(
        "config_versions",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("yaml", sa.String(), nullable=False),
        sa.Column("applied_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_config_versions")),
    )


def _create_decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("decision", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_decisions")),
        sqlite_with_rowid=False,
    )


def _create_journal_positions() -> None:
    op.create_table(
        "journal_positions",
        sa.Column("journal", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("segment", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("applied_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("journal", name=op.f("pk_journal_positions")),
    )


def _create_postings() -> None:
    op.create_table(
        "postings",
        sa.Column("seq", Serial, autoincrement=True, nullable=False),
        sa.Column("entry_id", sa.String(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("amount_pusd", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_postings")),
        sa.UniqueConstraint("entry_id", "line", name=op.f("uq_postings_entry_id_line")),
    )
    op.create_index(op.f("ix_postings_account_at_us"), "postings", ["account", "at_us"])


def _create_price_versions() -> None:
    op.create_table(
        "price_versions",
        sa.Column("version", Serial, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.Column("price", Json, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_price_versions")),
    )
    op.create_index(op.f("ix_price_versions_name_since_us"), "price_versions", ["name", "since_us"])


def _create_quarantine() -> None:
    op.create_table(
        "quarantine",
        sa.Column("seq", Serial, autoincrement=True, nullable=False),
        sa.Column("journal", sa.String(), nullable=False),
        sa.Column("segment", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_quarantine")),
        sa.UniqueConstraint(
            "journal", "segment", "offset", name=op.f("uq_quarantine_journal_segment_offset")
        ),
    )


def _create_refusals() -> None:
    op.create_table(
        "refusals",
        sa.Column("seq", Serial, autoincrement=True, nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("refused_us", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("org_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=False),
        sa.Column("scope", sa.String(), nullable=True),
        sa.Column("decision", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_refusals")),
        sa.UniqueConstraint("request_id", name=op.f("uq_refusals_request_id")),
    )
    op.create_index(op.f("ix_refusals_refused_us"), "refusals", ["refused_us"])
