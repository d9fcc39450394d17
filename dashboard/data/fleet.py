"""Reads of own engines and of routing overrides, with the rules of `data`."""

from pathlib import Path

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, argument, engine, query, read
from dashboard.viewer import ViewerScope
from ledger.fleet.driftnotes import DriftNote, read_drift
from ledger.fleet.samples import FleetSample
from ledger.fleet.upkeepnotes import UpkeepNote, read_notes
from ledger.overrides import Override
from ledger.overrides import overrides as read_overrides
from ledger.policies import PolicySet
from ledger.policies import policy_sets as read_policy_sets
from ledger.queries import reads as queries

MOST_POLICY_SETS = 100


def upkeep() -> dict[str, UpkeepNote]:
    """Return this host's upkeep notes by engine, if `-- --run-dir DIR` is given."""
    run_dir = argument("--run-dir")
    return {} if run_dir is None else read_notes(Path(run_dir))


def drift() -> dict[str, DriftNote]:
    """Return this host's drift findings by pool, if `-- --run-dir DIR` is given."""
    run_dir = argument("--run-dir")
    return {} if run_dir is None else read_drift(Path(run_dir))


@query(ViewerScope.HOUSE, teams=False)
def engines(
    connection: Connection, view: DashboardView
) -> tuple[list[FleetSample], list[FleetSample], int]:
    """Return every engine's latest sample, a thinned history, and the history's bucket in us."""
    first = queries.first_sample_us(connection, view.scope)
    length = view.span_us if first is None else view.scope.end_us - first
    bucket = queries.samples_bucket_us(length)
    return (
        queries.engines_now(connection),
        queries.engine_samples(connection, view.scope, bucket_us=bucket),
        bucket,
    )


@query(ViewerScope.HOUSE, teams=False)
def round_trips(connection: Connection, _view: DashboardView) -> dict[str, int]:
    """Return the round trip to each engine, in microseconds."""
    return queries.round_trips(connection)


@query(ViewerScope.HOUSE, teams=False)
def streamed(
    connection: Connection, view: DashboardView, limit: int
) -> list[queries.StreamedAnswer]:
    """Return the latest streams of each own engine, oldest first."""
    names = [row.engine for row in queries.engines_now(connection)]
    return queries.streamed(connection, view.scope, names, limit=limit)


@read(ViewerScope.HOUSE, teams=False)
def policy_sets(view: DashboardView) -> list[PolicySet]:
    """Return the sets activated in the period, newest first, among the latest hundred."""
    found = read_policy_sets(engine(view.url), MOST_POLICY_SETS)
    return [set_ for set_ in found if view.scope.start_us <= set_.recorded_us < view.scope.end_us]


@read(ViewerScope.HOUSE, ttl=None)
def newest_policy_sets(view: DashboardView, most: int) -> list[PolicySet]:
    """Return policy sets of all times, newest first, uncached."""
    return list(read_policy_sets(engine(view.url), most))


@read(ViewerScope.HOUSE, teams=False)
def overrides(view: DashboardView) -> list[Override]:
    """Return the operators' overrides that are active now."""
    return [
        override
        for override in read_overrides(engine(view.url))
        if override.is_standing(view.now_us)
    ]
