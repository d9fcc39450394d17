"""Drain, restart and resume of engines of the running host. May block.

The steps are those of an operator: an override keeps new requests away on every host, requests in
flight end, and only then the parent of this host's processes restarts the engine.
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
    """Disable the engine inside the context; an existing override is left unchanged."""
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
        with suppress(verbs.OverrideError):  # it expired, or another person revoked it
            verbs.enable(ledger, seat.name, author._replace(at_us=Clock().wall_us()))


def wait_until_empty(host: EngineHost, rows: Sequence[int], limit_s: float, told: Told) -> None:
    """Wait until no request is in flight there, after every worker has read the override."""
    time.sleep(FOLLOW_S)
    names = ", ".join(host.runtime.engines[row].name for row in rows)

    def describe_open() -> str:
        count = sum(host.snapshot(row).in_flight for row in rows)
        return f"{names}: {count} requests under way" if count else ""

    wait_until_done(describe_open, limit_s, told)


def restart_engine(host: EngineHost, row: int, deadline_s: float, told: Told) -> None:
    """Drain and restart an engine, and wait until telemetry sees the new process serve."""
    wait_until_empty(host, [row], deadline_s - time.monotonic(), told)
    before = host.snapshot(row)
    host.order(row)

    def missing() -> str:
        seen = host.snapshot(row)
        is_new = seen.life not in (0, before.life) and seen.state.health is TargetHealth.HEALTHY
        return "" if is_new else f"{seen.seat.name}: {seen.word}"

    wait_until_done(missing, deadline_s - time.monotonic(), told)


def wait_until_done(missing: Callable[[], str], limit_s: float, told: Told) -> None:
    """Wait until `missing` returns no text, reporting what it returns. Raises `DrainTimeout`."""
    deadline_s = time.monotonic() + limit_s
    while words := missing():
        if time.monotonic() >= deadline_s:
            raise DrainTimeout(f"not done in time: {words}")
        told(words)
        time.sleep(LOOK_S)
