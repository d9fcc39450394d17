"""`breakeven engine status|drain|resume|restart|logs`: the engines of the host that runs here.

Drain and resume are overrides like any other (`breakeven target`), with the wait that they need.
A restart is asked of the host's parent process, which alone starts and ends engines.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.status import Status
from sqlalchemy import Engine

from gateway import overrideverbs as verbs
from gateway.cli_config import Config, ledger_engine, ledger_reader, load_or_fail
from gateway.cli_operate import By, Why, author_of
from gateway.cli_output import AsJson, emit, fail, table
from gateway.clock import Clock
from gateway.engines import log_of, restart_orders
from gateway.following import FOLLOW_S
from gateway.overrides import TARGET, barred
from gateway.runtime import EngineSeat, Runtime
from gateway.settings import Settings
from gateway.sightings import engine_state
from gateway.slots import Board, Load
from gateway.statedir import is_held
from ledger.overrides import Override
from router.types import EngineState, Health

LOOK_S = 0.2
Name = Annotated[str, typer.Argument(help="pool:NAME/0, or pool:NAME for all of its engines.")]
Patience = Annotated[str, typer.Option("--timeout", help="How long to wait: 90s, 30m, 2h.")]


class OutOfTimeError(Exception):
    """What was waited for did not come true."""


class Seen(NamedTuple):
    """An engine at one moment."""

    row: int
    seat: EngineSeat
    state: EngineState
    in_flight: int  # of this host's requests
    life: int  # 0: none serves, or somebody else's
    word: str


class Host:
    """What the running host knows of its engines, by its shared memory."""

    def __init__(self, settings: Settings, runtime: Runtime, board: Board) -> None:
        self.runtime = runtime
        self._stale_s = settings.telemetry.stale_s
        self._board = board

    def look(self, row: int) -> Seen:
        board, seat = self._board, self.runtime.engines[row]
        loads, life = board.loads(row), board.life(row)
        state = engine_state(board.published(row), loads, Clock().now_s(), self._stale_s, life=life)
        serves = state.health is Health.HEALTHY
        word = state.health.value if serves or not seat.managed else board.stage(row)
        return Seen(row, seat, state, int(loads[Load.SEQUENCES]), int(life), word)

    def rows(self, name: str) -> list[int]:
        """Of the engines that a name means; fails when there are none."""
        engines = self.runtime.engines
        found = [
            row for row, seat in enumerate(engines) if name in (seat.name, f"pool:{seat.pool}")
        ]
        if not found:
            fail(f"there is no engine {name}; there are {', '.join(one.name for one in engines)}")
        return found


def status(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Every engine of this host: state, what runs, KV cache in use, what operators hold over it."""
    settings = load_or_fail(config)
    with _running(settings) as host, ledger_reader(settings) as engine:
        stands = verbs.in_force(engine, Clock().wall_us())
        found = [host.look(row) for row in range(len(host.runtime.engines))]
    emit(
        [_as_dict(one, stands) for one in found], as_json=as_json,
        show=lambda out: out.print(_table(found, stands)),
    )  # fmt: skip


def drain(
    name: Name,
    timeout: Patience = "30m",
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Send an engine no new request, and wait until those under way have ended."""
    settings = load_or_fail(config)
    with _running(settings) as host, _operating(settings) as ledger:
        rows, limit_s = host.rows(name), verbs.span_us(timeout) / 1e6
        verbs.disable(ledger, settings, name, author_of(by, note))
        _empty(host, rows, limit_s)
    words = f"{name} is drained and stays so until `breakeven engine resume {name}`."
    emit({"engine": name, "drained": True}, as_json=as_json, show=lambda out: out.print(words))


def resume(
    name: Name,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Let requests go to an engine again."""
    settings = load_or_fail(config)
    with _operating(settings) as ledger:
        verbs.enable(ledger, name, author_of(by, note))
    words = f"{name} gets requests again within {FOLLOW_S:g} s."
    emit({"engine": name, "drained": False}, as_json=as_json, show=lambda out: out.print(words))


def restart(
    name: Name,
    timeout: Patience = "30m",
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Drain, restart and resume one engine after the other; no request fails for it.

    The timeout is each engine's. When it is over the engine gets requests again, restarted or not.
    """
    settings = load_or_fail(config)
    with _running(settings) as host, _operating(settings) as ledger:
        lasts_us = verbs.span_us(timeout)
        seats = [(row, host.runtime.engines[row]) for row in host.rows(name)]
        for _, seat in seats:
            if not seat.managed:
                fail(f"{seat.name} was not started by this gateway: restart it where it runs")
        for row, seat in seats:
            author = author_of(by, note or "restart")
            with _away(ledger, settings, seat, author._replace(until_us=author.at_us + lasts_us)):
                _next_life(host, row, time.monotonic() + lasts_us / 1e6)
            if not as_json:
                typer.echo(f"{seat.name} serves again.")
    names = [seat.name for _, seat in seats]
    emit({"restarted": names}, as_json=as_json, show=lambda _: None)


def logs(
    name: Name,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="So many, the last.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="And what comes.")] = False,
    config: Config = Path("breakeven.yaml"),
) -> None:
    """What an engine that this gateway started has written."""
    settings = load_or_fail(config)
    runtime = _runtime(settings)
    found = [one for one in runtime.engines if name in (one.name, f"pool:{one.pool}")]
    files = [log_of(runtime, seat) for seat in found if seat.managed]
    if not files:
        fail(f"{name} is no engine that this gateway starts; `breakeven engine status` lists them")
    for file in files:
        if not file.exists():
            fail(f"there is no {file}: {name} was not started yet")
        if len(files) > 1:
            typer.echo(f"==> {file.name} <==")
        with file.open(encoding="utf-8", errors="replace") as log:
            for line in deque(log, maxlen=lines):
                typer.echo(line, nl=False)
            while follow and file is files[-1]:
                text = log.read()
                typer.echo(text, nl=False)
                time.sleep(0 if text else LOOK_S)


@contextmanager
def _running(settings: Settings) -> Iterator[Host]:
    """The host that runs here; fails when none does."""
    if not is_held(settings):
        fail(f"no gateway runs on {settings.state.resolve()}: `breakeven serve` starts one")
    runtime = _runtime(settings)
    board = Board(runtime.run_dir / "board", runtime.layout)
    try:
        yield Host(settings, runtime, board)
    finally:
        board.close()


def _runtime(settings: Settings) -> Runtime:
    path = settings.state.resolve() / "run" / "runtime.json"
    try:
        return Runtime.load(path)
    except FileNotFoundError:
        fail(f"there is no {path}: `breakeven serve` makes it")
    except msgspec.MsgspecError as error:
        fail(f"{path}: {error}")


@contextmanager
def _operating(settings: Settings) -> Iterator[Engine]:
    with ledger_engine(settings) as engine:
        try:
            yield engine
        except (verbs.Impossible, OutOfTimeError) as error:
            fail(str(error))


@contextmanager
def _away(
    ledger: Engine, settings: Settings, seat: EngineSeat, author: verbs.Author
) -> Iterator[None]:
    """Meanwhile it gets no requests; what somebody else holds over it stays as it is."""
    subject = TARGET + seat.name
    if any(one.subject == subject for one in verbs.in_force(ledger, author.at_us)):
        yield
        return
    verbs.disable(ledger, settings, seat.name, author)
    try:
        yield
    finally:
        with suppress(verbs.Impossible):  # its time is over, or somebody else took it back
            verbs.enable(ledger, seat.name, author._replace(at_us=Clock().wall_us()))


def _empty(host: Host, rows: Sequence[int], limit_s: float) -> None:
    """Once every worker has heard of it: until nothing of theirs is under way there."""
    time.sleep(FOLLOW_S)
    names = ", ".join(host.runtime.engines[row].name for row in rows)

    def left() -> str:
        count = sum(host.look(row).in_flight for row in rows)
        return f"{names}: {count} requests under way" if count else ""

    _until(left, limit_s)


def _next_life(host: Host, row: int, deadline_s: float) -> None:
    """Empty it, have it restarted, and wait until telemetry has seen its new life serve."""
    _empty(host, [row], deadline_s - time.monotonic())
    before = host.look(row)
    (restart_orders(host.runtime) / str(row)).touch(mode=0o600)

    def missing() -> str:
        seen = host.look(row)
        is_new = seen.life not in (0, before.life) and seen.state.health is Health.HEALTHY
        return "" if is_new else f"{seen.seat.name}: {seen.word}"

    _until(missing, deadline_s - time.monotonic())


def _until(missing: Callable[[], str], limit_s: float) -> None:
    """Wait until nothing is missing, saying what is. Raises `OutOfTimeError`."""
    deadline_s = time.monotonic() + limit_s
    with Status("", console=Console(stderr=True)) as shown:
        while words := missing():
            if time.monotonic() >= deadline_s:
                raise OutOfTimeError(f"not done in time: {words}")
            shown.update(words)
            time.sleep(LOOK_S)


def _as_dict(one: Seen, stands: Sequence[Override]) -> dict[str, Any]:
    state = one.state
    return {
        "engine": one.seat.name,
        "state": one.word,
        "in_flight": one.in_flight,
        "running": state.running,
        "kv_usage": _usage(state),
        "life": one.life,
        "url": one.seat.base_url,
        "managed": one.seat.managed,
        "override": _override(one.seat, stands),
    }


def _table(found: Sequence[Seen], stands: Sequence[Override]) -> Any:
    rows = [
        [
            one.seat.name, one.word, str(one.in_flight), str(one.state.running),
            "-" if (used := _usage(one.state)) is None else f"{used:.0%}",
            str(one.life or "-"), _override(one.seat, stands) or "",
        ]
        for one in found
    ]  # fmt: skip
    columns = ("=engine", "state", ">in flight", ">running", ">KV", ">life", "held over it")
    return table("Engines", columns, rows)


def _usage(state: EngineState) -> float | None:
    if state.health is not Health.HEALTHY or state.kv_capacity_tokens <= 0:
        return None
    return state.kv_used_tokens / state.kv_capacity_tokens


def _override(seat: EngineSeat, stands: Sequence[Override]) -> str | None:
    """What keeps every model's requests away."""
    found = barred(stands, "", [verbs.Place(seat.name, own=True)]).get(seat.name)
    return None if found is None else found[1]
