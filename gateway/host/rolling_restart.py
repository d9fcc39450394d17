"""Taking engines of the running host out, restarting them and putting them back. May block.

As an operator's verbs do it: an override keeps new requests away on every host, what is under way
ends, and only then the parent of this host's processes is asked for the engine's next life.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control import override_changes as verbs
from gateway.control.admin.enginehost import EngineHost
from gateway.followers import FOLLOW_S
from gateway.policies.overrides import TARGET
from gateway.runtime import EngineReplica
from router.types import TargetHealth

LOOK_S = 0.2
Told = Callable[[str], None]


class DrainTimeout(Exception):
    """A wait that ended before its condition became true."""


@contextmanager
def drain(
    ledger: Engine, settings: Settings, seat: EngineReplica, author: verbs.OverrideAuthor
) -> Iterator[None]:
    """Meanwhile it gets no requests; what somebody else holds over it stays as it is."""
    subject = TARGET + seat.name
    if any(
        override.subject == subject for override in verbs.overrides_in_force(ledger, author.at_us)
    ):
        yield
        return
    verbs.disable(ledger, settings, seat.name, author)
    try:
        yield
    finally:
        with suppress(verbs.OverrideError):  # its time is over, or somebody else took it back
            verbs.enable(ledger, seat.name, author._replace(at_us=Clock().wall_us()))


def wait_until_empty(host: EngineHost, rows: Sequence[int], limit_s: float, told: Told) -> None:
    """Once every worker has heard of it: until nothing of theirs is under way there."""
    time.sleep(FOLLOW_S)
    names = ", ".join(host.runtime.engines[row].name for row in rows)

    def describe_open() -> str:
        count = sum(host.snapshot(row).in_flight for row in rows)
        return f"{names}: {count} requests under way" if count else ""

    wait_until_done(describe_open, limit_s, told)


def restart_engine(host: EngineHost, row: int, deadline_s: float, told: Told) -> None:
    """Empty it, have it restarted, and wait until telemetry has seen its new life serve."""
    wait_until_empty(host, [row], deadline_s - time.monotonic(), told)
    before = host.snapshot(row)
    host.order(row)

    def missing() -> str:
        seen = host.snapshot(row)
        is_new = seen.life not in (0, before.life) and seen.state.health is TargetHealth.HEALTHY
        return "" if is_new else f"{seen.seat.name}: {seen.word}"

    wait_until_done(missing, deadline_s - time.monotonic(), told)


def wait_until_done(missing: Callable[[], str], limit_s: float, told: Told) -> None:
    """Wait until nothing is missing, telling what is. Raises `DrainTimeout`."""
    deadline_s = time.monotonic() + limit_s
    while words := missing():
        if time.monotonic() >= deadline_s:
            raise DrainTimeout(f"not done in time: {words}")
        told(words)
        time.sleep(LOOK_S)
