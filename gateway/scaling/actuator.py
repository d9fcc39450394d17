"""Starts, stops and lists engines: one interface for this machine and for others.

`gateway.scaling.supervisor_actuator`, `kubernetes_actuator` and `command_actuator` implement it.
Orders are idempotent: whoever died between an order and its answer gives it again, by the same
token, and gets no second engine for it. What a list does not name is not there.
"""

from dataclasses import dataclass
from typing import Protocol


class ActuatorError(Exception):
    """An order or a list failed, or was not answered in time; its words say what happened."""


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """An engine that an actuator has. `token` is `None` where it does not know one.

    `name` is the actuator's own. `place` is which engine of the pool it is, where that is known.
    `ends_us` is when its owner takes it away, microseconds since the epoch, where that was said.
    """

    name: str
    token: str | None = None
    place: int | None = None
    ends_us: int | None = None


class FleetActuator(Protocol):
    """Starts and stops engines of one pool. Every call may block, and ends in a bounded time.

    `ordered`: places are filled from the lowest and emptied from the highest. `adopts`: engines
    that ran before the pool was ever sized become the plan's own.
    """

    ordered: bool
    adopts: bool

    def start(self, token: str, place: int) -> None: ...

    def stop(self, token: str, place: int) -> None: ...

    def list(self) -> list[ListedInstance]: ...


def make_token(pool: str, place: int, nonce: str) -> str:
    """Return the tag of one engine's life: pool, place and nonce."""
    return f"{pool}.{place}.{nonce}"
