"""Reads of what sums by team and tags answer, refused and remembered as in `data`."""

from dashboard.data import View, engine, read
from dashboard.viewer import Reach
from ledger.database import snapshot
from ledger.queries.tags import Tagged
from ledger.queries.tags import spent_by_hour as read_spent_by_hour
from ledger.queries.tags import tagged as read_tagged


@read(Reach.TEAM)
def tagged(view: View) -> list[Tagged]:
    with snapshot(engine(view.url)) as connection:
        return read_tagged(connection, view.scope)


@read(Reach.TEAM)
def spent_by_hour(view: View) -> dict[int, int]:
    """pico-USD by the start of each hour in which anything was spent."""
    with snapshot(engine(view.url)) as connection:
        return read_spent_by_hour(connection, view.scope)
