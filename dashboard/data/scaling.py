"""Reads of pools that size themselves, with the rules of `data.reads`."""

from dataclasses import dataclass

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.fleet.fleet_reads import changes, instances_between, plans, scaled_pools
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord
from ledger.reports.scaling_read import EarnedDay, earned_days

MOST = 2_000


@dataclass(frozen=True, slots=True)
class ScaledPool:
    """One pool over the view's period; `last` is the newest plan of any time."""

    pool: str
    last: FleetPlanRecord | None
    plans: tuple[FleetPlanRecord, ...]
    changes: tuple[FleetChange, ...]
    instances: tuple[FleetInstance, ...]
    days: tuple[EarnedDay, ...]


@query(ViewerScope.HOUSE, teams=False)
def scaled_fleets(connection: Connection, view: DashboardView) -> list[ScaledPool]:
    """Return the pools that were ever scaled, by name."""
    scope, found = view.scope, []
    for pool in scaled_pools(connection):
        newest = plans(connection, pool, limit=1)
        span = (scope.start_us, scope.end_us)
        within = {"since_us": scope.start_us, "until_us": scope.end_us, "limit": MOST}
        found.append(
            ScaledPool(
                pool=pool,
                last=newest[0] if newest else None,
                plans=tuple(plans(connection, pool, **within)),
                changes=tuple(changes(connection, pool, **within)),
                instances=tuple(instances_between(connection, pool, *span)),
                days=tuple(earned_days(connection, pool, *span)),
            )
        )
    return found
