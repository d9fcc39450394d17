"""Interface of actuators, which start, stop and list engines.

`gateway.scaling.supervisor_actuator`, `kubernetes_actuator` and `command_actuator` implement it.
Orders are idempotent: after a crash the order is repeated with the same token and creates no second
engine. An engine that the list lacks does not exist.
"""

from dataclasses import dataclass
from typing import Protocol


class ActuatorError(Exception):
    """Error: an order or a list failed or timed out; the message says what happened."""


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """Engine in an actuator's list. `token` is `None` if the actuator does not know one.

    `name` is the actuator's own name. `place` is the engine's number in the pool, if known.
    `ends_us` is when its owner takes it away, in microseconds since the epoch, if announced.
    """

    name: str
    token: str | None = None
    place: int | None = None
    ends_us: int | None = None


class FleetActuator(Protocol):
    """Interface that starts and stops engines of one pool. Calls may block for a bounded time.

    Implemented by the supervisor, Kubernetes, KEDA and command actuators. `ordered`: places are
    filled from the lowest and emptied from the highest. `adopts`: engines that ran before the pool
    was first sized become the plan's own.
    """

    ordered: bool
    adopts: bool

    def start(self, token: str, place: int) -> None: ...

    def stop(self, token: str, place: int) -> None: ...

    def list(self) -> list[ListedInstance]: ...


def make_token(pool: str, place: int, nonce: str) -> str:
    """Return the token of one engine instance: pool, place and nonce."""
    return f"{pool}.{place}.{nonce}"
