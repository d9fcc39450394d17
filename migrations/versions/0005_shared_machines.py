"""Add shared machines of pools, GPU hours of part of an hour, corrections, and tiers."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_HOUR_US = "3600000000"
_HOUR_SUMS = (
    "bill_pusd", "used_pusd", "idle_pusd", "unavailable_pusd", "busy_us", "unavailable_us",
)  # fmt: skip
_TEAM_SUMS = ("used_pusd", "provisional_pusd", "engine_us")


def upgrade() -> None:
    op.add_column("attempts", sa.Column("tier", sa.String(), nullable=True))
    op.add_column("gpu_contracts", sa.Column("machine", sa.String(), nullable=True))
    op.add_column(
        "gpu_contracts",
        sa.Column("share_ppm", sa.Integer(), nullable=False, server_default=sa.text("1000000")),
    )
    with op.batch_alter_table("gpu_hours") as batch:
        batch.add_column(_correction())
        batch.add_column(
            sa.Column("span_us", sa.BigInteger(), nullable=False, server_default=sa.text(_HOUR_US))
        )
        batch.drop_constraint("pk_gpu_hours", type_="primary")
        batch.create_primary_key("pk_gpu_hours", ["pool", "hour_us", "correction"])
    with op.batch_alter_table("gpu_hour_teams") as batch:
        batch.add_column(_correction())
        batch.drop_constraint("pk_gpu_hour_teams", type_="primary")
        batch.create_primary_key("pk_gpu_hour_teams", ["pool", "hour_us", "team_id", "correction"])


def downgrade() -> None:
    """Drop the new columns. Corrections are added to the one row per hour of the older tables."""
    _fold("gpu_hours", ("pool", "hour_us"), _HOUR_SUMS)
    _fold("gpu_hour_teams", ("pool", "hour_us", "team_id"), _TEAM_SUMS)
    with op.batch_alter_table("gpu_hour_teams") as batch:
        batch.drop_constraint("pk_gpu_hour_teams", type_="primary")
        batch.drop_column("correction")
        batch.create_primary_key("pk_gpu_hour_teams", ["pool", "hour_us", "team_id"])
    with op.batch_alter_table("gpu_hours") as batch:
        batch.drop_constraint("pk_gpu_hours", type_="primary")
        batch.drop_column("span_us")
        batch.drop_column("correction")
        batch.create_primary_key("pk_gpu_hours", ["pool", "hour_us"])
    with op.batch_alter_table("gpu_contracts") as batch:
        batch.drop_column("share_ppm")
        batch.drop_column("machine")
    op.drop_column("attempts", "tier")


def _correction() -> sa.Column[int]:
    return sa.Column("correction", sa.Integer(), nullable=False, server_default=sa.text("0"))


def _fold(table: str, keys: tuple[str, ...], sums: tuple[str, ...]) -> None:
    """Sum all corrections of each key into the row with the lowest one; delete the others."""
    named = sa.table(table, *(sa.column(name) for name in (*keys, *sums, "correction")))
    other = named.alias("other")
    same = sa.and_(*(other.c[key] == named.c[key] for key in keys))
    least = sa.select(sa.func.min(other.c.correction)).where(same).scalar_subquery()
    totals = {
        name: sa.select(sa.cast(sa.func.sum(other.c[name]), sa.BigInteger))
        .where(same)
        .scalar_subquery()
        for name in sums
    }
    op.execute(sa.update(named).where(named.c.correction == least).values(totals))
    op.execute(sa.delete(named).where(named.c.correction != least))
