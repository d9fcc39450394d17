"""Add scaling of fleets: leases, plans, changes, instances and scored hours."""

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "fleet_leases",
        sa.Column("pool", sa.String(), primary_key=True),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "fleet_pools",
        sa.Column("pool", sa.String(), primary_key=True),
        sa.Column("through_us", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.JSON(), nullable=False),
        sa.Column("advised", sa.JSON(), nullable=False),
    )
    op.create_table(
        "fleet_plans",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
    )
    op.create_index("ix_fleet_plans_pool_at_us", "fleet_plans", ["pool", "at_us"])
    _instances()
    _changes()
    op.create_table(
        "fleet_hours",
        sa.Column("pool", sa.String(), primary_key=True),
        sa.Column("hour_us", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("covered_us", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("ran_rent_pusd", sa.BigInteger(), nullable=False),
        sa.Column("ran_api_pusd", sa.BigInteger(), nullable=False),
        sa.Column("advised_rent_pusd", sa.BigInteger(), nullable=False),
        sa.Column("advised_api_pusd", sa.BigInteger(), nullable=False),
        sa.Column("curve", sa.JSON(), nullable=False),
        sa.Column("one_rent_pusd", sa.BigInteger(), nullable=False),
        sa.Column("least", sa.Integer(), nullable=False),
        sa.Column("fixed_engines", sa.Integer(), nullable=False),
    )


def _instances() -> None:
    op.create_table(
        "fleet_instances",
        sa.Column("token", sa.String(), primary_key=True),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("owned", sa.Boolean(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("pusd_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("unit_s", sa.Integer(), nullable=False),
        sa.Column("least_s", sa.Integer(), nullable=False),
        sa.Column("asked_us", sa.BigInteger(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=True),
        sa.Column("ready_us", sa.BigInteger(), nullable=True),
        sa.Column("stop_us", sa.BigInteger(), nullable=True),
        sa.Column("told_us", sa.BigInteger(), nullable=True),
        sa.Column("gone_us", sa.BigInteger(), nullable=True),
    )
    op.create_index("ix_fleet_instances_pool_gone_us", "fleet_instances", ["pool", "gone_us"])


def _changes() -> None:
    op.create_table(
        "fleet_changes",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("verb", sa.String(), nullable=False),
        sa.Column("token", sa.String(), nullable=True),
        sa.Column("engines", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.Column("expected_pusd", sa.BigInteger(), nullable=True),
        sa.Column("realised_pusd", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("done_us", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("detail", sa.String(), nullable=True),
    )
    op.create_index("ix_fleet_changes_pool_at_us", "fleet_changes", ["pool", "at_us"])


def downgrade() -> None:
    for table in (
        "fleet_hours", "fleet_changes", "fleet_instances", "fleet_plans", "fleet_pools",
        "fleet_leases",
    ):  # fmt: skip
        op.drop_table(table)
