"""Output of commands: tables for people, JSON for programs, one line for an error."""

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

if TYPE_CHECKING:  # Rich takes a tenth of a short command's time, so it is imported on use
    from rich.console import Console
    from rich.table import Table

    from gateway.cli.drawn import PipeSafeConsole

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")]

FILE_WIDTH = 200
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def console(*, err: bool = False) -> "Console":
    """Return a console as wide as the terminal; names do not wrap in files or pipes."""
    from rich.console import Console  # noqa: PLC0415  (Rich is a tenth of a short command)

    width = None if _is_terminal(sys.stderr if err else sys.stdout) else FILE_WIDTH
    return Console(emoji=False, highlight=False, soft_wrap=True, width=width, stderr=err)


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal; it is `None` if the shell closed it."""
    return stream is not None and stream.isatty()


def watching_console() -> "PipeSafeConsole":
    """Return a console for commands that run until they are stopped."""
    from gateway.cli.drawn import PipeSafeConsole  # noqa: PLC0415  (Rich, as above)

    width = None if _is_terminal(sys.stdout) else FILE_WIDTH
    return PipeSafeConsole(emoji=False, highlight=False, soft_wrap=True, width=width)


def print_line(line: str) -> None:
    """Print a line; a closed pipe is ignored, so that long commands continue."""
    try:
        print(line, flush=True)
    except OSError:
        with suppress(OSError, ValueError):
            to_nowhere(sys.stdout.fileno())


def to_nowhere(descriptor: int) -> None:
    """Redirect a descriptor to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def emit(value: Any, *, as_json: bool, show: Callable[["Console"], None]) -> None:
    """Print a result as JSON, or with `show` for people."""
    try:
        if as_json:
            typer.echo(json.dumps(value, indent=2, default=str))
        else:
            show(console())
    except OSError as error:
        if error.errno not in _FULL:
            raise
        to_nowhere(sys.stdout.fileno())
        fail(f"cannot write the output: {error.strerror}")


def print_result(value: Any, words: str, *, as_json: bool) -> None:
    """Print a result as JSON, or `words` for people."""
    emit(value, as_json=as_json, show=lambda out: out.print(words, markup=False))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    """Return a plain table from `gateway.cli.drawn`."""
    from gateway.cli.drawn import table as drawn  # noqa: PLC0415  (Rich, where a table is shown)

    return drawn(title, columns, rows)


def moment(at_us: int) -> str:
    """Return a time in UTC, to the minute."""
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M}"


def fail(message: str) -> NoReturn:
    """Print an error to stderr and exit with 1."""
    from rich.console import Console  # noqa: PLC0415  (Rich is a tenth of a short command)

    Console(emoji=False, stderr=True, highlight=False, soft_wrap=True).print(
        f"breakeven: {message}", style="red", markup=False
    )
    raise typer.Exit(1)


def note(message: str) -> None:
    """Print a line to stderr, beside the result on stdout."""
    typer.echo(f"breakeven: {message}", err=True)


def read_or_fail(file: Path) -> str:
    """Return a file's text; exit with 1 if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}")


def writable(*paths: Path | None) -> None:
    """Exit with 1 if a file could not be written, before long work starts."""
    for path in paths:
        if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
            fail(f"cannot write {path}: its folder does not exist or is read-only")
        if path is not None and path.is_dir():
            fail(f"cannot write {path}: it is a folder; name a file")
