"""Match of listed engines with rows of the ledger. No I/O.

Engines are matched by token, else by place, else by name, because a program may lose its tags.
Entries with equal name and token are one engine. Engines of another pool have their row and rent
there.
"""

import re
from collections.abc import Iterable, Sequence

from gateway.scaling.actuator import ListedInstance
from ledger.fleet.fleet_records import FleetInstance

_LIFE = re.compile(r"~\d{13,}$")


def stranger_keys(token: str) -> set[str]:
    """Return the keys of an unknown engine's row: its token, with and without a later mark."""
    return {token, _LIFE.sub("", token)}


class ListedMatches:
    """Listed engines by the rows that they belong to.

    `of` has those of owned rows by token, the engine named by the row first. `strange` are those of
    no plan by key. `returned` are rows that had ended, `foreign` engines of other pools.
    """

    def __init__(
        self,
        pool: str,
        instances: Sequence[FleetInstance],
        listed: Iterable[ListedInstance],
        closed: Iterable[FleetInstance] = (),
    ) -> None:
        """`closed` are rows of listed tokens that are not among the open `instances`."""
        unique = {(item.name, item.token): item for item in listed}.values()
        self._owned = {row.token: row for row in instances if row.owned}
        known = {row.token: row for row in closed}
        named = {item.token for item in unique}
        self.of: dict[str, list[ListedInstance]] = {}
        self.strange: dict[str, ListedInstance] = {}
        self.returned: list[FleetInstance] = []
        self.foreign: list[tuple[ListedInstance, str]] = []
        for item in unique:
            row = self._row(item, named)
            ended = known.get(item.token or "")
            if row is not None:
                self.of.setdefault(row.token, []).append(item)
            elif ended is not None and ended.pool != pool:
                self.foreign.append((item, ended.pool))
            elif ended is not None and ended.owned:
                self.returned.append(ended)
            else:
                self.strange[_key(pool, item)] = item
        for token, items in self.of.items():
            items.sort(key=lambda item: (item.name != self._owned[token].name, item.name))
            for extra in items[1:]:
                self.strange[f"{token}#{extra.name}"] = extra

    def has(self, row: FleetInstance) -> bool:
        """Return whether an open row's engine is listed."""
        if row.owned:
            return row.token in self.of
        return not stranger_keys(row.token).isdisjoint(self.strange)

    def _row(self, item: ListedInstance, named: set[str | None]) -> FleetInstance | None:
        """Return the owned row: by token, else by place, else by name."""
        if item.token is not None:
            return self._owned.get(item.token)
        for row in self._owned.values():
            if item.place is not None and row.place == item.place:
                return row
        return next(
            (
                row
                for row in self._owned.values()
                if row.name == item.name and row.token not in named
            ),
            None,
        )


def _key(pool: str, item: ListedInstance) -> str:
    return item.token if item.token is not None else f"{pool}!{item.name}"
