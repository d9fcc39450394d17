"""How every command speaks: tables for people, JSON for programs, one line for a mistake."""

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")]

FILE_WIDTH = 200
FOLDED = 3  # characters: what words of a table keep where a screen has no room
GAP = 2  # characters between columns
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def console(*, err: bool = False) -> Console:
    """As wide as the terminal; in a file or a pipe no name is folded."""
    width = None if _is_terminal(sys.stderr if err else sys.stdout) else FILE_WIDTH
    return Console(highlight=False, soft_wrap=True, width=width, stderr=err)


def _is_terminal(stream: TextIO | None) -> bool:
    """`None`: the shell closed it."""
    return stream is not None and stream.isatty()


def watching_console() -> "PipeSafeConsole":
    """The same for what runs until it is stopped."""
    width = None if _is_terminal(sys.stdout) else FILE_WIDTH
    return PipeSafeConsole(highlight=False, soft_wrap=True, width=width)


class PipeSafeConsole(Console):
    """Of a command that runs for long: it goes on when whoever read its output has left.

    Rich ends the program then, and a terminal that was closed raises at each line: a gateway would
    stop because of who looked at it.
    """

    def print_line(self, line: str) -> None:
        try:
            self.print(line, markup=False)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """What was not written yet goes nowhere, too, or the exit would fail at it."""
        self.quiet = True
        with suppress(OSError, ValueError):
            _to_nowhere(self.file.fileno())


def _to_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def emit(value: Any, *, as_json: bool, show: Callable[[Console], None]) -> None:
    """Print a result in the form that was asked for."""
    try:
        if as_json:
            typer.echo(json.dumps(value, indent=2, default=str))
        else:
            show(console())
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _to_nowhere(sys.stdout.fileno())
        fail(f"the output cannot be written: {error.strerror}")


def print_result(value: Any, words: str, *, as_json: bool) -> None:
    """Print a result, for people in these words."""
    emit(value, as_json=as_json, show=lambda out: out.print(words, markup=False))


class _WholeOutput(Table):
    """Never narrower than its columns' least: Rich would leave out those that find no room."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        least = sum((column.min_width or 0) + GAP for column in self.columns) - GAP
        return super().__rich_console__(
            console, options.update_width(max(options.max_width, least))
        )


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table; in front of a title `>` aligns numbers right, `=` keeps ids in one piece.

    On a narrow screen other words fold; where even that is not enough, the line is longer.
    """
    made = _WholeOutput(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        right, whole = column.startswith(">"), column.startswith("=")
        longest = max((len(row[place]) for row in rows), default=0)
        justify: Literal["right", "left"] = "right" if right else "left"
        made.add_column(
            column.lstrip(">="),
            justify=justify,
            no_wrap=right or whole,
            overflow="fold",
            min_width=longest if right or whole else min(longest, FOLDED),
        )
    for row in rows:
        made.add_row(*row)
    return made


def moment(at_us: int) -> str:
    """To the minute, in UTC."""
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M}"


def fail(message: str) -> NoReturn:
    """Say what is wrong on stderr and leave with status 1."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"breakeven: {message}", style="red", markup=False
    )
    raise typer.Exit(1)


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
