"""Reads of what sums by team and tags or key answer, refused and remembered as in `data`."""

from collections.abc import Mapping
from dataclasses import replace

from dashboard.data import View, engine, read
from dashboard.viewer import Reach
from ledger.database import snapshot
from ledger.queries.reads import Spent
from ledger.queries.tags import Keyed, Tagged, key_names
from ledger.queries.tags import keyed as read_keyed
from ledger.queries.tags import spent_by_hour as read_spent_by_hour
from ledger.queries.tags import spent_by_key as read_spent_by_key
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


@read(Reach.TEAM)
def keyed(view: View) -> list[Keyed]:
    """By team, key and backend; a key stands under its label."""
    with snapshot(engine(view.url)) as connection:
        names = key_names(connection, view.team)
        return [
            replace(one, key_id=_label(one.key_id, names))
            for one in read_keyed(connection, view.scope)
        ]


@read(Reach.TEAM)
def spent_by_key(view: View, width_us: int) -> list[Spent]:
    """Over time, in buckets of `width_us`, by the label of the key."""
    with snapshot(engine(view.url)) as connection:
        names = key_names(connection, view.team)
        return [
            replace(one, name=_label(one.name, names))
            for one in read_spent_by_key(connection, view.scope, width_us)
        ]


def _label(key_id: str, names: Mapping[str, str]) -> str:
    """Its name and its id, for two keys may be called alike."""
    return f"{names[key_id]} ({key_id})" if key_id in names else key_id
