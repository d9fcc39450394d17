"""Sees a pool's engines as the gateway does, and keeps requests away from one.

An engine serves when telemetry found it healthy, whatever its actuator says. Requests are kept
away by an override like an operator's, which counts on every host.
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
    """The engines of one pool, by their places. `EngineProbe` implements it."""

    def serving(self) -> frozenset[int]: ...

    def busy(self) -> frozenset[int]: ...

    def away(self) -> Mapping[int, int]: ...

    def keep_away(self, place: int, why: str) -> None: ...

    def let_in(self, place: int) -> None: ...

    def paused(self) -> str | None: ...


class EngineProbe:
    """Reads the host's shared memory and the overrides in force."""

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
        """Return the engine of a place, as overrides and pages call it."""
        return f"pool:{self._pool}/{place}"

    @property
    def places(self) -> list[int]:
        return sorted(self._rows)

    def serving(self) -> frozenset[int]:
        """Return places whose engine is healthy."""
        return frozenset(
            place
            for place, row in self._rows.items()
            if self._host.snapshot(row).state.health is TargetHealth.HEALTHY
        )

    def busy(self) -> frozenset[int]:
        """Return places with requests under way, of this host or by the engine's own count."""
        found = set()
        for place, row in self._rows.items():
            snapshot = self._host.snapshot(row)
            if snapshot.in_flight or snapshot.state.running:
                found.add(place)
        return frozenset(found)

    def away(self) -> Mapping[int, int]:
        """Return since when requests are kept from a place, whoever asked for it."""
        return {
            place: min(override.recorded_us for override in held)
            for place in self._rows
            if (held := self._held(place))
        }

    def parked(self) -> list[int]:
        """Return places from which a plan keeps requests and where nothing serves."""
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
        """Take back what this process held; an operator's word stays."""
        if any(override.actor == ACTOR for override in self._held(place)):
            author = verbs.OverrideAuthor(ACTOR, "wanted by its plan", self._clock.wall_us())
            with suppress(verbs.OverrideError):  # somebody else took it back
                verbs.enable(self._ledger, self.name(place), author)

    def paused(self) -> str | None:
        """Return who paused the pool, and why; `None` while nobody did."""
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
