"""Commands `breakeven engine status|drain|resume|restart|logs` for a running host.

They run on this host, or on the one that answers for `--gateway`. Drain and resume are overrides
(`breakeven target`) with a wait; a restart handles a pool's engines one by one.
"""

import codecs
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Self

import typer
from rich.console import Console
from rich.status import Status

from gateway.cli.admin_backend import (
    AdminBackend,
    By,
    Why,
    open_writing_backend,
    run_change,
    run_query,
)
from gateway.cli.config import Config, load_or_fail
from gateway.cli.output import AsJson, emit, fail, print_result, table
from gateway.control.admin import engines as verbs
from gateway.control.admin import overrides
from gateway.control.admin.enginehost import runtime_of
from gateway.control.admin.verb import NoInput, OperationRefused
from gateway.control.override_changes import OverrideError, span_us
from gateway.followers import FOLLOW_S
from gateway.host.engines import log_of
from gateway.policies.overrides import instant


class LogTail:
    """Reader of the end of a growing log, across rotations by rename or by copy.

    Engines' logs are renamed, others copied. Call `last` once, then `more` repeatedly: no line is
    lost. Raises `OSError` for a missing file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open_log()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def _open_log(self) -> None:
        self._file: BinaryIO = self._path.open("rb")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def last(self, lines: int) -> str:
        """Return the last lines; right after a rotation, including lines of the previous log."""
        older: list[bytes] = []
        with suppress(OSError):
            older = (
                self._path.with_name(self._path.name + ".1").read_bytes().splitlines(keepends=True)
            )
        return self._decoder.decode(b"".join(deque(chain(older, self._file), maxlen=lines)))

    def more(self) -> str:
        """Return the new lines; empty if there are none."""
        if text := self._decoder.decode(self._file.read()):
            return text
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return ""  # between the old and the new file
        rest = ""
        if now.st_ino != os.fstat(self._file.fileno()).st_ino:
            rest = self._decoder.decode(self._file.read(), final=True)  # rest of the rotated file
            self._file.close()
            self._open_log()
        elif now.st_size < self._file.tell():
            self._file.seek(0)
        return rest + self._decoder.decode(self._file.read())


LOOK_S = 0.2
Name = Annotated[str, typer.Argument(help="pool:NAME/0, or pool:NAME for all of its engines.")]
Patience = Annotated[str, typer.Option("--timeout", help="Timeout: 90s, 30m or 2h.")]


def status(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List this host's engines: state, load, KV usage, overrides, upkeep."""
    found = run_query(config, verbs.engines_status, NoInput())["data"]

    def show(out: Console) -> None:
        out.print(_table(found))
        for words in (*filter(None, map(_why, found)), *filter(None, map(_late, found))):
            out.print(words, style="yellow", markup=False)
        for words in filter(None, map(_describe_measurement, found)):
            out.print(words, markup=False)

    emit(found, as_json=as_json, show=show)


def drain(
    name: Name,
    timeout: Patience = "30m",
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Drain an engine: send no new requests, and wait for the open ones."""
    with open_writing_backend(config, by) as desk:
        limit_s = span_us(timeout) / 1e6
        found = desk.do(verbs.engines_drain, verbs.EngineNameInput(name, note))["data"]
        _empty(desk, [engine["engine"] for engine in found], limit_s)
    words = f"{name} is drained and stays so until `breakeven engine resume {name}`."
    print_result({"engine": name, "drained": True}, words, as_json=as_json)


def resume(
    name: Name,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Send requests to an engine again."""
    done = run_change(config, by, verbs.engines_resume, verbs.EngineNameInput(name, note))
    print_result(done, f"{name} gets requests again within {FOLLOW_S:g} s.", as_json=as_json)


def restart(
    name: Name,
    timeout: Patience = "30m",
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Drain, restart and resume engines one by one, without failed requests.

    The timeout is per engine. At its end the engine gets requests again, restarted or not.
    """
    with open_writing_backend(config, by) as desk:
        limit_s = span_us(timeout) / 1e6
        every = desk.do(verbs.engines_status, NoInput())["data"]
        found = [
            item for item in every if name in (item["engine"], item["engine"].rpartition("/")[0])
        ]
        if not found:
            known = ", ".join(item["engine"] for item in every)
            raise OperationRefused(
                f"there is no engine `{name}`; the engines are {known or 'none'}"
            )
        for engine in found:
            if not engine["managed"]:
                words = (
                    f"{engine['engine']} was not started by this gateway: restart it where it runs"
                )
                raise OperationRefused(words)
        for engine in found:
            with _drain_engine(desk, engine["engine"], note or "restart", timeout):
                _next_life(desk, engine["engine"], time.monotonic() + limit_s)
            if not as_json:
                typer.echo(f"{engine['engine']} serves again.")
    emit(
        {"restarted": [engine["engine"] for engine in found]},
        as_json=as_json,
        show=lambda _: None,
    )


def logs(
    name: Name,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=1, help="Number of lines, from the end.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the log and print new lines.")
    ] = False,
    config: Config = Path("breakeven.yaml"),
) -> None:
    """Print the log of an engine that this gateway started."""
    settings = load_or_fail(config)
    try:
        runtime = runtime_of(settings)
    except OverrideError as error:
        fail(str(error))
    found = [engine for engine in runtime.engines if name in (engine.name, f"pool:{engine.pool}")]
    files = [log_of(runtime, seat) for seat in found if seat.managed]
    if not files:
        fail(f"{name} is not an engine of this gateway; `breakeven engine status` lists them")
    for file in files:
        if not file.exists():
            fail(f"there is no {file}: {name} was not started yet")
    with ExitStack() as stack:
        _tail({file.name: stack.enter_context(LogTail(file)) for file in files}, lines, follow)


def _tail(tails: Mapping[str, LogTail], lines: int, follow: bool) -> None:
    shown = ""
    for key, tail in tails.items():
        shown = _print_log(key, tail.last(lines), "" if len(tails) > 1 else key)
    while follow:
        texts = {key: text for key, tail in tails.items() if (text := tail.more())}
        for key, text in texts.items():
            shown = _print_log(key, text, shown)
        time.sleep(0 if texts else LOOK_S)


def _print_log(name: str, text: str, shown: str) -> str:
    """Print the text, with the name if another log was printed before."""
    if name != shown:
        typer.echo(f"==> {name} <==")
    typer.echo(text, nl=False)
    return name


@contextmanager
def _drain_engine(desk: AdminBackend, engine: str, note: str, lasts: str) -> Iterator[None]:
    """Keep requests from the engine inside the block; existing overrides stay."""
    if _engine_entries(desk, [engine])[0]["held"]:
        yield
        return
    desk.do(overrides.targets_disable, overrides.DisableTargetInput(engine, lasts, note))
    try:
        yield
    finally:
        with suppress(OverrideError, OperationRefused):  # it has expired, or was removed
            desk.do(overrides.targets_enable, overrides.EnableTargetInput(engine, note))


def _empty(desk: AdminBackend, names: Sequence[str], limit_s: float) -> None:
    """Wait until every worker has applied it and no request is open there."""
    time.sleep(FOLLOW_S)
    words = ", ".join(names)

    def describe_open() -> str:
        count = sum(event["in_flight"] for event in _engine_entries(desk, names))
        return f"{words}: {count} requests under way" if count else ""

    _wait_until_done(describe_open, limit_s)


def _next_life(desk: AdminBackend, engine: str, deadline_s: float) -> None:
    """Drain the engine, restart it, and wait until telemetry reports the new process healthy."""
    _empty(desk, [engine], deadline_s - time.monotonic())
    (before,) = desk.do(verbs.engines_restart, verbs.RestartEngineInput(engine, at_once=True))[
        "data"
    ]

    def missing() -> str:
        (seen,) = _engine_entries(desk, [engine])
        is_new = seen["life"] not in (0, before["life"]) and seen["state"] == "healthy"
        return "" if is_new else f"{engine}: {seen['state']}"

    _wait_until_done(missing, deadline_s - time.monotonic())


def _engine_entries(desk: AdminBackend, names: Sequence[str]) -> list[dict[str, Any]]:
    found = desk.do(verbs.engines_status, NoInput())["data"]
    return [entry for entry in found if entry["engine"] in names]


def _wait_until_done(missing: Callable[[], str], limit_s: float) -> None:
    """Wait until nothing is missing, printing what is. Raises `OperationRefused`."""
    deadline_s = time.monotonic() + limit_s
    with Status("", console=Console(emoji=False, stderr=True)) as shown:
        while words := missing():
            if time.monotonic() >= deadline_s:
                raise OperationRefused(f"not done in time: {words}")
            shown.update(words)
            time.sleep(LOOK_S)


def _table(found: Sequence[dict[str, Any]]) -> Any:
    rows = [
        [
            entry["engine"],
            entry["state"],
            str(entry["in_flight"]),
            str(entry["running"]),
            "-" if entry["kv_usage"] is None else f"{entry['kv_usage']:.0%}",
            _way(entry),
            str(entry["life"] or "-"),
            entry["override"] or "",
            _upkeep(entry["upkeep"]),
        ]
        for entry in found
    ]
    columns = (
        "=engine",
        "state",
        ">in flight",
        ">running",
        ">KV",
        ">round trip",
        ">life",
        "held over it",
        "upkeep",
    )
    return table("Engines", columns, rows)


def _way(entry: dict[str, Any]) -> str:
    """Return the round trip, marked if it is a large part of the tightest TTFT."""
    if entry["round_trip_us"] is None:
        return "-"
    return f"{entry['round_trip_us'] / 1e3:.2f} ms{' FAR' if entry['far'] else ''}"


def _describe_measurement(entry: dict[str, Any]) -> str:
    """Describe the requests sent to measure the engine's speed, and when."""
    note = entry.get("measured")
    if note is None:
        return ""
    when = datetime.fromtimestamp(note["at_us"] / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    spent = (
        f"{note['requests']} requests of ours, {note['prompt_tokens']:,} prompt and "
        f"{note['output_tokens']:,} output tokens"
    )
    sent = spent if note["requests"] else "no request was sent to it"
    return f"{entry['engine']} since {when}: {note['source']}; {sent}"


def _why(entry: dict[str, Any]) -> str:
    """Return the parent's reason for an engine's state."""
    return f"{entry['engine']} is {entry['state']}: {entry['reason']}" if entry["reason"] else ""


def _late(entry: dict[str, Any]) -> str:
    """Return the setting that would keep long prompts from delaying tokens."""
    if not entry["breaks_tpot"]:
        return ""
    advised = entry["prefill_budget_advised"]
    advice = (
        "no smaller step keeps it: promise more"
        if advised is None
        else f"set prefill_budget_tokens: {advised} (vLLM: --max-num-batched-tokens)"
    )
    step_ms = entry["full_step_us"] / 1e3
    words = f"{entry['engine']}: a step full of prompts takes {step_ms:.0f} ms"
    return f"{words}, longer than promised for a token; {advice}"


def _upkeep(note: dict[str, Any] | None) -> str:
    """Describe the next restart or stop, drift, and pending upkeep."""
    if note is None:
        return ""
    times = (("restart", "restart_us"), ("stops", "stops_us"), ("starts", "starts_us"))
    words = [f"{what} {instant(note[name])}" for what, name in times if note[name] is not None]
    if note["pace"] is not None:
        words.append(f"{note['pace']:.0%} of its first hours' pace")
    return "; ".join([*words, *(item for item in (note["waits"], note["done"]) if item)])
