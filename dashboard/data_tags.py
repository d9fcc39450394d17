"""Reads of what sums by team and tags or key answer, refused and remembered as in `data`."""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from dashboard.data import View, query
from dashboard.viewer import Reach
from ledger.queries.reads import AttemptRow, Spent
from ledger.queries.tags import Keyed, Tagged, key_names
from ledger.queries.tags import attempts_of_key as read_attempts_of_key
from ledger.queries.tags import keyed as read_keyed
from ledger.queries.tags import spent_by_hour as read_spent_by_hour
from ledger.queries.tags import spent_by_key as read_spent_by_key
from ledger.queries.tags import tagged as read_tagged
from ledger.queries.tags import whole_from_us as read_whole_from_us


@query(Reach.TEAM)
def tagged(connection: Connection, view: View) -> list[Tagged]:
    return read_tagged(connection, view.scope)


@query(Reach.TEAM)
def spent_by_hour(connection: Connection, view: View) -> dict[int, int]:
    """pico-USD by the start of each hour in which anything was spent."""
    return read_spent_by_hour(connection, view.scope)


@query(Reach.TEAM)
def keyed(connection: Connection, view: View) -> list[Keyed]:
    """By team, key and backend."""
    return read_keyed(connection, view.scope)


@query(Reach.NAMES, entries=4, teams=False)
def whole_from_us(connection: Connection, _view: View) -> int:
    """Since when sums by key have every attempt of the books."""
    return read_whole_from_us(connection)


@query(Reach.TEAM)
def labels(connection: Connection, view: View) -> Mapping[str, str]:
    """What each key is shown as, by its id: those with a name."""
    names = key_names(connection, view.team)
    return {one: _label(one, names) for one in names}


@query(Reach.TEAM)
def attempts_of_key(
    connection: Connection, view: View, key_id: str, where: tuple[tuple[str, str], ...], limit: int
) -> list[AttemptRow]:
    return read_attempts_of_key(connection, view.scope, key_id, where=dict(where), limit=limit)


@query(Reach.TEAM)
def spent_by_key(connection: Connection, view: View, width_us: int) -> list[Spent]:
    """Over time, in buckets of `width_us`, by the label of the key."""
    names = key_names(connection, view.team)
    return [
        replace(one, name=_label(one.name, names))
        for one in read_spent_by_key(connection, view.scope, width_us)
    ]


def _label(key_id: str, names: Mapping[str, str]) -> str:
    """Its name and its id, for two keys may be called alike."""
    return f"{names[key_id]} ({key_id})" if key_id in names else key_id
