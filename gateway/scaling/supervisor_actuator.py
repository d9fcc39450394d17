"""Actuator for this machine's engines: an engine of the pool wakes or rests.

Orders go to the host's parent process, as those of `upkeep`. An engine's tag is written to the
state directory before the order, so that a restarted host knows it.
"""

from pathlib import Path

from gateway.control.admin.enginehost import EngineHost
from gateway.fleet.scaled_seats import SeatTag, read_tags, write_tag
from gateway.scaling.actuator import ActuatorError, ListedInstance

RESTING = "resting"


class SupervisorActuator:
    """Implementation of `FleetActuator` for the `replicas` of one pool."""

    ordered = False
    adopts = True

    def __init__(self, host: EngineHost, pool: str) -> None:
        self._host, self._pool = host, pool
        self._state = Path(host.runtime.state_dir)
        self._rows = {
            int(seat.name.rpartition("/")[2]): row
            for row, seat in enumerate(host.runtime.engines)
            if seat.pool == pool and seat.managed
        }

    def start(self, token: str, place: int) -> None:
        row = self._row(place)
        write_tag(self._state, self._pool, place, SeatTag(token, is_up=True))
        self._host.order(row, "wake")

    def stop(self, token: str, place: int) -> None:
        row, tag = self._row(place), read_tags(self._state, self._pool).get(place)
        if tag is not None and tag.token != token:
            return  # another instance has the place
        write_tag(self._state, self._pool, place, SeatTag(token, is_up=False))
        self._host.order(row, "rest")

    def list(self) -> list[ListedInstance]:
        tags, found = read_tags(self._state, self._pool), []
        for place, row in sorted(self._rows.items()):
            snapshot = self._host.snapshot(row)
            if snapshot.word == RESTING:
                continue
            tag = tags.get(place)
            token = None if tag is None else tag.token
            found.append(ListedInstance(snapshot.seat.name, token, place))
        return found

    def _row(self, place: int) -> int:
        row = self._rows.get(place)
        if row is None:
            raise ActuatorError(f"pool {self._pool} has no engine {place} on this machine")
        return row
