"""Upkeep process: `python -m gateway.host.upkeep --config FILE --runtime FILE`.

It restarts engines by schedule and when they become slower, and stops and starts pools by schedule.
One per host, and only if a pool asks for it. It uses the same overrides and orders as an operator,
so they appear in lists, pages and `engine status`; an engine under an operator's override is left
alone. One engine of the host is away at a time, and none while the others of its pool lack capacity
for the requests in flight; a due restart waits, as long as the pool's `patience_h`.
"""

import logging
import signal
import time
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from backends.engine.decay import DecayEstimate, DecayReading, pace
from gateway.clock import Clock
from gateway.config import schedules
from gateway.config.settings import PoolSection, Settings
from gateway.control import override_changes as verbs
from gateway.control.admin.enginehost import EngineHost, EngineSnapshot
from gateway.fleet.shared_load import SharedLoadTable
from gateway.followers import FOLLOW_S
from gateway.host import drain_check, rolling_restart
from gateway.policies.overrides import TARGET, barred, instant
from gateway.process import start_process
from gateway.runtime import Runtime
from ledger.database import make_engine
from ledger.fleet.samples import readings
from ledger.fleet.upkeepnotes import ACTOR, UpkeepNote, write_notes
from ledger.overrides import DISABLED, NOTHING, Override, overrides
from router.types import TargetHealth

LOOK_S = 5.0
PACE_S = 600.0  # interval of pace measurements
FIRST_US = 6 * 3600 * 1_000_000  # reference period of an engine's pace
WARM_US = 10 * 60 * 1_000_000  # excluded from it: compilation and cold caches
LATELY_US = 2 * 3600 * 1_000_000
LIMIT_S = 1800.0  # for one engine to be emptied, restarted and to serve again

log = logging.getLogger("breakeven.upkeep")


class UpkeepLoop:
    """Loop of a host's upkeep. `step` does what is due; a restart blocks until it is done."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        board: SharedLoadTable,
        ledger: Engine,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._ledger = ledger
        self._clock = clock
        self._host = EngineHost(settings, runtime, board)
        self._kept = {name: pool for name, pool in settings.pools.items() if pool.upkeep.any}
        self._notes: dict[int, UpkeepNote] = {}
        self._asked_us: dict[str, int] = {}  # by pool: when it was last ordered to stop
        self._tried_us: dict[int, int] = {}  # by row: due time of a restart that failed
        self._lives: dict[int, tuple[int, int]] = {}  # by row: serving process and its first sight
        self._paced_s: dict[int, float] = {}
        self._paces: dict[int, DecayEstimate | None] = {}
        self._looked_s = 0.0

    def run(self) -> None:
        """Run until the process is ended."""
        while True:
            try:
                self.step()
            except DBAPIError as error:
                log.warning("engine upkeep waits: cannot reach the ledger error=%s", error.orig)
            time.sleep(LOOK_S)

    def step(self) -> None:
        """Stop and start pools by schedule, then restart at most one engine."""
        self._calendar()
        stands = verbs.overrides_in_force(self._ledger, self._clock.wall_us())
        for name, pool in self._kept.items():
            seen = {row: self._host.snapshot(row) for row in self._rows(name)}
            for row, event in seen.items():
                if not event.seat.managed:
                    continue
                why, due_us = self._due(row, event, pool)
                waits = self._hindrance(row, seen, stands, why) if why else None
                self._note(row, pool, waits)
                if why and waits is None:
                    self._restart(row, event, why, due_us)
                    return

    # -- restarts -------------------------------------------------------------------------------

    def _due(self, row: int, snapshot: EngineSnapshot, pool: PoolSection) -> tuple[str, int]:
        """Return why a restart is due, and since when; empty text if it is not."""
        now_us, kept = self._clock.wall_us(), pool.upkeep
        if snapshot.state.health is not TargetHealth.HEALTHY:
            return "", 0
        started_us = self._started_us(row, snapshot)
        patience_us = int(kept.patience_h * 3600 * 1e6)
        due_us = schedules.restart_due_us(kept, now_us)
        if due_us is not None and started_us < due_us and now_us - due_us < patience_us:
            return self._skip_tried(row, f"restart of {instant(due_us)}", due_us)
        found = self._pace(row, snapshot, pool, started_us)
        if found is not None and kept.restart_on_decay and found.is_lost(kept.restart_on_decay):
            words = f"restart: at {found.ratio:.0%} of its first hours' pace at like load"
            return self._skip_tried(row, words, now_us // patience_us * patience_us)
        return "", 0

    def _started_us(self, row: int, snapshot: EngineSnapshot) -> int:
        """Return when the engine started, as it reports, else when it was first seen here."""
        life, seen_us = self._lives.get(row, (0, 0))
        if life != snapshot.life:
            seen_us = self._clock.wall_us()
            self._lives[row] = snapshot.life, seen_us
        return self._host.started_us(row) or seen_us

    def _skip_tried(self, row: int, why: str, due_us: int) -> tuple[str, int]:
        return ("", 0) if self._tried_us.get(row) == due_us else (why, due_us)

    def _pace(
        self, row: int, snapshot: EngineSnapshot, pool: PoolSection, started_us: int
    ) -> DecayEstimate | None:
        """Return the engine's pace, measured every ten minutes after its first hours."""
        now_us, now_s, share = (
            self._clock.wall_us(), self._clock.now_s(), pool.upkeep.restart_on_decay,
        )  # fmt: skip
        if share is None or now_us < started_us + FIRST_US:
            self._paces.pop(row, None)
            return None
        if row not in self._paces or now_s - self._paced_s[row] >= PACE_S:
            first = (started_us + WARM_US, started_us + FIRST_US)
            lately = (max(first[1], now_us - LATELY_US), now_us)
            self._paces[row] = pace(
                self._readings(snapshot.seat.name, first),
                self._readings(snapshot.seat.name, lately),
                share,
            )
            self._paced_s[row] = now_s
        return self._paces[row]

    def _readings(self, name: str, span: tuple[int, int]) -> list[DecayReading]:
        return [
            DecayReading(at_us / 1e6, running, read, written)
            for at_us, running, read, written in readings(self._ledger, name, *span)
        ]

    def _hindrance(
        self, row: int, seen: Mapping[int, EngineSnapshot], stands: Sequence[Override], why: str
    ) -> str | None:
        """Return why a due restart must wait, or `None`."""
        seat = seen[row].seat
        held = barred(
            stands, "", [verbs.TargetName(event.seat.name, own=True) for event in seen.values()]
        )
        if held:
            name, (_, words) = next(iter(held.items()))
            return f"{why} waits: {name} is {words}"
        without = Override(0, TARGET + seat.name, DISABLED, None, 0, ACTOR)
        if alone := verbs.unserved_models(self._settings, [*stands, without]):
            return f"{why} waits: `{alone[0]}` would have no target"
        states = {event.seat.name: event.state for event in seen.values()}
        busy = drain_check.reason_against(states, seat.name)
        return None if busy is None else f"{why} waits: {busy}"

    def _restart(self, row: int, snapshot: EngineSnapshot, why: str, due_us: int) -> None:
        log.warning("restarting an engine engine=%s reason=%s", snapshot.seat.name, why)
        now_us = self._clock.wall_us()
        author = verbs.OverrideAuthor(ACTOR, why, now_us, now_us + int(LIMIT_S * 1e6))
        done = f"restarted ({why})"
        try:
            with rolling_restart.drain(self._ledger, self._settings, snapshot.seat, author):
                rolling_restart.restart_engine(
                    self._host, row, time.monotonic() + LIMIT_S, self._meanwhile
                )
        except rolling_restart.DrainTimeout as error:
            self._tried_us[row] = due_us
            done = f"{why} failed: {error}"
        log.warning("engine restart ended engine=%s result=%s", snapshot.seat.name, done)
        self._paces.pop(row, None)
        note = self._notes.get(row) or UpkeepNote(snapshot.seat.name)
        self._notes[row] = msgspec.structs.replace(
            note, done=done, done_us=self._clock.wall_us(), waits=None
        )
        self._write()

    def _meanwhile(self, _words: str) -> None:
        """Apply other pools' schedules while one engine restarts."""
        if self._clock.now_s() - self._looked_s >= LOOK_S:
            self._calendar()

    # -- pools that are stopped for a while -----------------------------------------------------

    def _calendar(self) -> None:
        self._looked_s = self._clock.now_s()
        for name, pool in self._kept.items():
            if pool.upkeep.stop is None:
                continue
            rows = [row for row in self._rows(name) if self._runtime.engines[row].managed]
            since_us = schedules.stopped_since_us(pool.upkeep, self._clock.wall_us())
            if since_us is not None and not self._is_overruled(name, since_us):
                self._stop_pool(name, pool, rows)
            else:
                self._start_pool(name, rows)

    def _is_overruled(self, name: str, since_us: int) -> bool:
        """Return whether a person revoked the stop; then the pool runs until its next stop."""
        subject = TARGET + f"pool:{name}"
        return any(
            override.subject == subject
            and override.says == NOTHING
            and override.actor != ACTOR
            and override.recorded_us >= since_us
            for override in overrides(self._ledger)
        )

    def _stop_pool(self, name: str, pool: PoolSection, rows: Sequence[int]) -> None:
        """Disable the pool, let requests end, then stop its engines; one stage per call."""
        looks = [self._host.snapshot(row) for row in rows]
        if all(look.word == "resting" for look in looks):
            return
        now_us, subject = self._clock.wall_us(), TARGET + f"pool:{name}"
        if all(
            override.subject != subject
            for override in verbs.overrides_in_force(self._ledger, now_us)
        ):
            until_us = schedules.starts_us(pool.upkeep, now_us)
            author = verbs.OverrideAuthor(ACTOR, "stopped by the calendar", now_us, until_us)
            verbs.disable(self._ledger, self._settings, f"pool:{name}", author)
        asked_us = self._asked_us.setdefault(name, now_us)
        if now_us - asked_us < FOLLOW_S * 1e6 or any(look.in_flight for look in looks):
            return
        for look in looks:
            if look.word != "resting":
                self._host.order(look.row, "rest")

    def _start_pool(self, name: str, rows: Sequence[int]) -> None:
        """Start the pool, and enable it when all engines serve; the stop also ends by itself."""
        self._asked_us.pop(name, None)
        looks = [self._host.snapshot(row) for row in rows]
        for look in looks:
            if look.word == "resting":
                self._host.order(look.row, "wake")
        now_us, subject = self._clock.wall_us(), TARGET + f"pool:{name}"
        ours = any(
            override.subject == subject and override.actor == ACTOR
            for override in verbs.overrides_in_force(self._ledger, now_us)
        )
        if ours and all(look.state.health is TargetHealth.HEALTHY for look in looks):
            author = verbs.OverrideAuthor(ACTOR, "started by the calendar", now_us)
            verbs.enable(self._ledger, f"pool:{name}", author)

    def _rows(self, pool: str) -> list[int]:
        return [row for row, seat in enumerate(self._runtime.engines) if seat.pool == pool]

    # -- what is told ---------------------------------------------------------------------------

    def _note(self, row: int, pool: PoolSection, waits: str | None) -> None:
        now_us, kept = self._clock.wall_us(), pool.upkeep
        stops = None
        if kept.stop is not None and schedules.stopped_since_us(kept, now_us) is None:
            stops = schedules.CronSchedule(kept.stop, kept.timezone).next_us(now_us)
        found = self._paces.get(row)
        before = self._notes.get(row) or UpkeepNote(self._runtime.engines[row].name)
        note = msgspec.structs.replace(
            before,
            restart_us=schedules.restart_next_us(kept, now_us),
            stops_us=stops,
            starts_us=schedules.starts_us(kept, now_us) if stops is None else None,
            pace=None if found is None else round(found.ratio, 3),
            waits=waits,
        )
        if note != before or row not in self._notes:
            self._notes[row] = note
            self._write()

    def _write(self) -> None:
        write_notes(self._runtime.run_dir, [self._notes[row] for row in sorted(self._notes)])


def main(arguments: list[str] | None = None) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, runtime, *_ = start_process("gateway.host.upkeep", "upkeep", __doc__, arguments)
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    try:
        UpkeepLoop(settings, runtime, board, make_engine(runtime.ledger_url), Clock()).run()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
