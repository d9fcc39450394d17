"""Output of every command: tables for people, JSON for programs, one line for a mistake."""

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

if TYPE_CHECKING:  # Rich takes a tenth of a short command, so it is there when it draws
    from rich.console import Console
    from rich.table import Table

    from gateway.cli.drawn import PipeSafeConsole

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")]

FILE_WIDTH = 200
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def console(*, err: bool = False) -> "Console":
    """Return a console as wide as the terminal; in a file or a pipe no name is wrapped."""
    from rich.console import Console  # noqa: PLC0415  (Rich is a tenth of a short command)

    width = None if _is_terminal(sys.stderr if err else sys.stdout) else FILE_WIDTH
    return Console(emoji=False, highlight=False, soft_wrap=True, width=width, stderr=err)


def _is_terminal(stream: TextIO | None) -> bool:
    """`None`: the shell closed it."""
    return stream is not None and stream.isatty()


def watching_console() -> "PipeSafeConsole":
    """Return a console for commands that run until they are stopped."""
    from gateway.cli.drawn import PipeSafeConsole  # noqa: PLC0415  (Rich, as above)

    width = None if _is_terminal(sys.stdout) else FILE_WIDTH
    return PipeSafeConsole(emoji=False, highlight=False, soft_wrap=True, width=width)


def print_line(line: str) -> None:
    """Print for as long as somebody reads; a command that runs for long goes on without them."""
    try:
        print(line, flush=True)
    except OSError:
        with suppress(OSError, ValueError):
            to_nowhere(sys.stdout.fileno())


def to_nowhere(descriptor: int) -> None:
    """Let what is written there go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def emit(value: Any, *, as_json: bool, show: Callable[["Console"], None]) -> None:
    """Print a result in the form that was asked for."""
    try:
        if as_json:
            typer.echo(json.dumps(value, indent=2, default=str))
        else:
            show(console())
    except OSError as error:
        if error.errno not in _FULL:
            raise
        to_nowhere(sys.stdout.fileno())
        fail(f"the output cannot be written: {error.strerror}")


def print_result(value: Any, words: str, *, as_json: bool) -> None:
    """Print a result, for people in these words."""
    emit(value, as_json=as_json, show=lambda out: out.print(words, markup=False))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    """Return a plain table, as `gateway.cli.drawn` draws it."""
    from gateway.cli.drawn import table as drawn  # noqa: PLC0415  (Rich, where a table is shown)

    return drawn(title, columns, rows)


def moment(at_us: int) -> str:
    """To the minute, in UTC."""
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M}"


def fail(message: str) -> NoReturn:
    """Say what is wrong on stderr and leave with status 1."""
    from rich.console import Console  # noqa: PLC0415  (Rich is a tenth of a short command)

    Console(emoji=False, stderr=True, highlight=False, soft_wrap=True).print(
        f"breakeven: {message}", style="red", markup=False
    )
    raise typer.Exit(1)


def note(message: str) -> None:
    """Write one line to stderr, beside a result on stdout."""
    typer.echo(f"breakeven: {message}", err=True)


def read_or_fail(file: Path) -> str:
    """Its text; status 1 where there is none."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}")


def writable(*paths: Path | None) -> None:
    """Leave with status 1 where a file could not be written: before an hour of work, not after."""
    for path in paths:
        if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
            fail(f"{path}: cannot be written: there is no such folder, or it may only be read")
        if path is not None and path.is_dir():
            fail(f"{path}: is a folder: name a file")
