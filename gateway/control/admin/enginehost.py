"""State of the engines of a running host from shared memory, and restart orders."""

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
    """State of an engine at one moment."""

    row: int
    seat: EngineReplica
    state: EngineState
    in_flight: int  # of this host's requests
    life: int  # 0: no process serves, or another owner's
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
        """Return the engines of a name. Raises `OverrideError` if there are none."""
        found = [
            snapshot
            for snapshot in self.every()
            if name in (snapshot.seat.name, f"pool:{snapshot.seat.pool}")
        ]
        if not found:
            known = ", ".join(engine.name for engine in self.runtime.engines)
            raise OverrideError(f"there is no engine `{name}`; the engines are {known or 'none'}")
        return found

    def latencies(self) -> list[tuple[str, Latencies]]:
        """Return the latencies that all workers observed of each API, by its name."""
        names = self.runtime.layout.apis
        return [(name, latencies_of(self._board.api_stats(at))) for at, name in enumerate(names)]

    def started_us(self, row: int) -> int:
        """Return when the serving process started, in us since the epoch; 0 if unknown."""
        return int(self._board.published(row)[EngineCell.STARTED_S] * 1e6)

    def round_trip_us(self, row: int) -> int | None:
        """Return the round trip of telemetry's connection in the last minute; `None` if unknown."""
        return round(self._board.published(row)[EngineCell.ROUND_TRIP_S] * 1e6) or None

    def order(self, row: int, verb: str = "") -> None:
        """Order the host's parent process, the only one that starts engines, to restart this one.

        The verbs `rest` and `wake` stop it until it is needed again.
        """
        name = f"{row}.{verb}" if verb else str(row)
        (self.runtime.restart_orders / name).touch(mode=0o600)


@contextmanager
def running_here(settings: Settings) -> Iterator[EngineHost]:
    """Yield the host that runs on this state directory. Raises `OverrideError` if none does."""
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
    """Return the runtime of the last start. Raises `OverrideError` if there was none."""
    path = settings.state.resolve() / "run" / "runtime.json"
    try:
        return Runtime.load(path)
    except FileNotFoundError:
        raise OverrideError(
            f"there is no file {path}: start `breakeven serve`, which makes it"
        ) from None
    except OSError as error:
        raise _not_ours(error) from error
    except msgspec.MsgspecError as error:
        raise OverrideError(f"{path}: {error}") from error


def _not_ours(error: OSError) -> OverrideError:
    who = ": it is for the user whom `breakeven serve` runs as" if error.errno == EACCES else ""
    return OverrideError(f"{error.filename}: {error.strerror}{who}")
