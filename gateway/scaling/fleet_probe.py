"""Probe of a pool's engines as the gateway sees them; also keeps requests from an engine.

An engine serves if telemetry finds it healthy, whatever its actuator says. Requests are kept away
by an override like an operator's, which applies to all hosts.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control import override_changes as verbs
from gateway.control.admin.enginehost import EngineHost
from gateway.policies.overrides import TARGET, is_target_named
from ledger.fleet.scaling_notes import ACTOR, EVERY_POOL, PAUSE, PAUSED
from ledger.overrides import DISABLED, Override
from router.types import TargetHealth


class FleetProbe(Protocol):
    """Interface of a pool's engines, by place; implemented by `EngineProbe`."""

    def serving(self) -> frozenset[int]: ...

    def busy(self) -> frozenset[int]: ...

    def away(self) -> Mapping[int, int]: ...

    def keep_away(self, place: int, why: str) -> None: ...

    def let_in(self, place: int) -> None: ...

    def paused(self) -> str | None: ...


class EngineProbe:
    """Probe on the host's shared memory and the active overrides."""

    def __init__(
        self, host: EngineHost, settings: Settings, ledger: Engine, pool: str, clock: Clock
    ) -> None:
        self._host, self._settings, self._ledger = host, settings, ledger
        self._pool, self._clock = pool, clock
        self._rows = {
            int(seat.name.rpartition("/")[2]): row
            for row, seat in enumerate(host.runtime.engines)
            if seat.pool == pool
        }

    def name(self, place: int) -> str:
        """Return the engine's name at a place, as in overrides."""
        return f"pool:{self._pool}/{place}"

    @property
    def places(self) -> list[int]:
        return sorted(self._rows)

    def serving(self) -> frozenset[int]:
        """Return the places with a healthy engine."""
        return frozenset(
            place
            for place, row in self._rows.items()
            if self._host.snapshot(row).state.health is TargetHealth.HEALTHY
        )

    def busy(self) -> frozenset[int]:
        """Return the places with open requests, of this host or by the engine's own count."""
        found = set()
        for place, row in self._rows.items():
            snapshot = self._host.snapshot(row)
            if snapshot.in_flight or snapshot.state.running:
                found.add(place)
        return frozenset(found)

    def away(self) -> Mapping[int, int]:
        """Return by place since when requests are kept away, by whomever."""
        return {
            place: min(override.recorded_us for override in held)
            for place in self._rows
            if (held := self._held(place))
        }

    def parked(self) -> list[int]:
        """Return the places from which a plan keeps requests and where nothing serves."""
        serving = self.serving()
        return [
            place
            for place in self.places
            if place not in serving and any(item.actor == ACTOR for item in self._held(place))
        ]

    def keep_away(self, place: int, why: str) -> None:
        if place in self._rows and not self._held(place):
            author = verbs.OverrideAuthor(ACTOR, why, self._clock.wall_us())
            verbs.disable(self._ledger, self._settings, self.name(place), author)

    def let_in(self, place: int) -> None:
        """Remove this process's override; an operator's stays."""
        if any(override.actor == ACTOR for override in self._held(place)):
            author = verbs.OverrideAuthor(ACTOR, "wanted by its plan", self._clock.wall_us())
            with suppress(verbs.OverrideError):  # already removed
                verbs.enable(self._ledger, self.name(place), author)

    def paused(self) -> str | None:
        """Return who paused the pool, and why; `None` if it is not paused."""
        subjects = (f"{PAUSE}{EVERY_POOL}", f"{PAUSE}{self._pool}")
        for override in self._standing():
            if override.subject in subjects and override.says == PAUSED:
                why = f": {override.note}" if override.note else ""
                return f"paused by {override.actor}{why}"
        return None

    def _held(self, place: int) -> list[Override]:
        name = self.name(place)
        return [
            override
            for override in self._standing()
            if override.says == DISABLED
            and is_target_named(override.subject.removeprefix(TARGET), name)
        ]

    def _standing(self) -> tuple[Override, ...]:
        return tuple(verbs.overrides_in_force(self._ledger, self._clock.wall_us()))
