"""Add own engines: contracts, closed hours, samples, catalog, capacity."""

import sqlalchemy as sa
from alembic import op

from ledger.orm.types import Json, Serial

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_capacity()
    _create_catalog()
    _create_engine_samples()
    _create_gpu_contracts()
    _create_gpu_hour_teams()
    _create_gpu_hours()


def downgrade() -> None:
    op.drop_table("gpu_hours")
    op.drop_table("gpu_hour_teams")
    op.drop_table("gpu_contracts")
    op.drop_table("engine_samples")
    op.drop_table("catalog")
    op.drop_table("capacity")


def _create_capacity() -> None:
    op.create_table(
        "capacity",
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("kv_capacity_tokens", sa.Integer(), nullable=True),
        sa.Column("slo_ttft_ms", sa.Double(), nullable=True),
        sa.Column("slo_tpot_ms", sa.Double(), nullable=True),
        sa.Column("slo_input_tokens_per_s", sa.Double(), nullable=True),
        sa.Column("slo_output_tokens_per_s", sa.Double(), nullable=True),
        sa.Column("step_a_s", sa.Double(), nullable=True),
        sa.Column("step_b_s", sa.Double(), nullable=True),
        sa.Column("step_c_s", sa.Double(), nullable=True),
        sa.Column("step_d_s", sa.Double(), nullable=True),
        sa.Column("step_t0_s", sa.Double(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_capacity")),
    )
    op.create_index(op.f("ix_capacity_pool_at_us"), "capacity", ["pool", "at_us"])


def _create_catalog() -> None:
    op.create_table(
        "catalog",
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=True),
        sa.Column("flags", Json, nullable=True),
        sa.Column("context_tokens", sa.Integer(), nullable=True),
        sa.Column("max_num_seqs", sa.Integer(), nullable=True),
        sa.Column("prefill_budget_tokens", sa.Integer(), nullable=True),
        sa.Column("kv_block_tokens", sa.Integer(), nullable=True),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog")),
    )
    op.create_index(op.f("ix_catalog_pool_at_us"), "catalog", ["pool", "at_us"])


def _create_engine_samples() -> None:
    op.create_table(
        "engine_samples",
        sa.Column("seq", Serial, autoincrement=True, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("health", sa.String(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=True),
        sa.Column("waiting", sa.Integer(), nullable=True),
        sa.Column("kv_usage_ppm", sa.Integer(), nullable=True),
        sa.Column("kv_promised_ppm", sa.Integer(), nullable=True),
        sa.Column("prompt_tokens_total", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens_total", sa.BigInteger(), nullable=True),
        sa.Column("preemptions_total", sa.BigInteger(), nullable=True),
        sa.Column("prefix_hit_ppm", sa.Integer(), nullable=True),
        sa.Column("busy_us", sa.BigInteger(), nullable=True),
        sa.Column("step_feedback_ppm", sa.Integer(), nullable=True),
        sa.Column("load_ppm", sa.Integer(), nullable=True),
        sa.Column("bid_price_pusd_per_s", sa.BigInteger(), nullable=True),
        sa.Column("age_us", sa.BigInteger(), nullable=True),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_engine_samples")),
        sa.UniqueConstraint("engine", "at_us", name=op.f("uq_engine_samples_engine_at_us")),
    )
    op.create_index(op.f("ix_engine_samples_at_us"), "engine_samples", ["at_us"])
    op.create_index(op.f("ix_engine_samples_pool_at_us"), "engine_samples", ["pool", "at_us"])


def _create_gpu_contracts() -> None:
    op.create_table(
        "gpu_contracts",
        sa.Column("id", Serial, autoincrement=True, nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("gpu_type", sa.String(), nullable=False),
        sa.Column("gpus_per_replica", sa.Integer(), nullable=False),
        sa.Column("replicas", sa.Integer(), nullable=False),
        sa.Column("billing", sa.String(), nullable=False),
        sa.Column("pusd_per_hour", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.String(), nullable=True),
        sa.Column("since", sa.Date(), nullable=True),
        sa.Column("until", sa.Date(), nullable=True),
        sa.Column("ops_seconds_per_week", sa.Integer(), nullable=False),
        sa.Column("ops_pusd_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gpu_contracts")),
    )
    op.create_index(
        op.f("ix_gpu_contracts_pool_recorded_us"), "gpu_contracts", ["pool", "recorded_us"]
    )


def _create_gpu_hour_teams() -> None:
    op.create_table(
        "gpu_hour_teams",
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("hour_us", sa.BigInteger(), nullable=False),
        sa.Column("team_id", sa.String(), nullable=False),
        sa.Column("used_pusd", sa.BigInteger(), nullable=False),
        sa.Column("provisional_pusd", sa.BigInteger(), nullable=False),
        sa.Column("engine_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pool", "hour_us", "team_id", name=op.f("pk_gpu_hour_teams")),
    )


def _create_gpu_hours() -> None:
    op.create_table(
        "gpu_hours",
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("hour_us", sa.BigInteger(), nullable=False),
        sa.Column("contract_id", sa.BigInteger(), nullable=False),
        sa.Column("replicas", sa.Integer(), nullable=False),
        sa.Column("bill_pusd", sa.BigInteger(), nullable=False),
        sa.Column("used_pusd", sa.BigInteger(), nullable=False),
        sa.Column("idle_pusd", sa.BigInteger(), nullable=False),
        sa.Column("unavailable_pusd", sa.BigInteger(), nullable=False),
        sa.Column("busy_us", sa.BigInteger(), nullable=False),
        sa.Column("unavailable_us", sa.BigInteger(), nullable=False),
        sa.Column("closed_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pool", "hour_us", name=op.f("pk_gpu_hours")),
    )
