"""A running host's knowledge of its engines in shared memory, and orders to restart one."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES
from typing import NamedTuple

import msgspec

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.config.statedir import is_held
from gateway.control.override_changes import OverrideError
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import Latencies, latencies_of
from gateway.fleet.target_views import engine_state
from gateway.runtime import EngineReplica, Runtime
from gateway.table_layout import EngineCell, LoadCell
from router.types import EngineState, TargetHealth


class EngineSnapshot(NamedTuple):
    """An engine at one moment."""

    row: int
    seat: EngineReplica
    state: EngineState
    in_flight: int  # of this host's requests
    life: int  # 0: none serves, or somebody else's
    word: str


class EngineHost:
    def __init__(self, settings: Settings, runtime: Runtime, board: SharedLoadTable) -> None:
        self.runtime = runtime
        self._stale_s = settings.telemetry.stale_s
        self._board = board

    def snapshot(self, row: int) -> EngineSnapshot:
        board, seat = self._board, self.runtime.engines[row]
        loads, life = board.loads(row), board.life(row)
        state = engine_state(board.published(row), loads, Clock().now_s(), self._stale_s, life=life)
        serves = state.health is TargetHealth.HEALTHY
        word = state.health.value if serves or not seat.managed else board.stage(row)
        return EngineSnapshot(
            row, seat, state, int(board.own_loads(row)[LoadCell.SEQUENCES]), int(life), word
        )

    def every(self) -> list[EngineSnapshot]:
        return [self.snapshot(row) for row in range(len(self.runtime.engines))]

    def engines_named(self, name: str) -> list[EngineSnapshot]:
        """The engines that a name means; raises `OverrideError` when there are none."""
        found = [
            snapshot
            for snapshot in self.every()
            if name in (snapshot.seat.name, f"pool:{snapshot.seat.pool}")
        ]
        if not found:
            known = ", ".join(engine.name for engine in self.runtime.engines)
            raise OverrideError(f"there is no engine {name}; there are {known}")
        return found

    def latencies(self) -> list[tuple[str, Latencies]]:
        """Return the latencies that all workers observed of each API, by its name."""
        names = self.runtime.layout.apis
        return [(name, latencies_of(self._board.api_stats(at))) for at, name in enumerate(names)]

    def started_us(self, row: int) -> int:
        """When the process that serves was started, by the epoch; 0: it does not say."""
        return int(self._board.published(row)[EngineCell.STARTED_S] * 1e6)

    def round_trip_us(self, row: int) -> int | None:
        """Return the round trip of telemetry's connection in the last minute; `None` if unknown."""
        return round(self._board.published(row)[EngineCell.ROUND_TRIP_S] * 1e6) or None

    def order(self, row: int, verb: str = "") -> None:
        """Ask the host's parent process, which alone starts and ends engines, for its next life.

        `rest` and `wake` end it until it is wanted again.
        """
        name = f"{row}.{verb}" if verb else str(row)
        (self.runtime.restart_orders / name).touch(mode=0o600)


@contextmanager
def running_here(settings: Settings) -> Iterator[EngineHost]:
    """The host that runs on this state directory. Raises `OverrideError` when none does."""
    try:
        if not is_held(settings):
            here = settings.state.resolve()
            raise OverrideError(f"no gateway runs on {here}: `breakeven serve` starts one")
        runtime = runtime_of(settings)
        board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    except OSError as error:
        raise _not_ours(error) from error
    try:
        yield EngineHost(settings, runtime, board)
    finally:
        board.close()


def runtime_of(settings: Settings) -> Runtime:
    """Return what the last start resolved. Raises `OverrideError` where there was none."""
    path = settings.state.resolve() / "run" / "runtime.json"
    try:
        return Runtime.load(path)
    except FileNotFoundError:
        raise OverrideError(f"there is no {path}: `breakeven serve` makes it") from None
    except OSError as error:
        raise _not_ours(error) from error
    except msgspec.MsgspecError as error:
        raise OverrideError(f"{path}: {error}") from error


def _not_ours(error: OSError) -> OverrideError:
    who = ": it is for the user whom `breakeven serve` runs as" if error.errno == EACCES else ""
    return OverrideError(f"{error.filename}: {error.strerror}{who}")
