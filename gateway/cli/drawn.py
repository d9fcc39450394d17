"""Output with Rich: tables, and the console of long-running commands."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from gateway.cli.output import to_nowhere

FOLDED = 3  # minimum characters of a wrapped column
GAP = 2  # characters between columns


class PipeSafeConsole(Console):
    """Console for long-running commands, which continue when the reader has closed the pipe.

    Rich would end the program, and a closed terminal raises at each line: closing a terminal would
    stop a gateway.
    """

    def print_line(self, line: str) -> None:
        try:
            self.print(line, markup=False)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Discard further output, including buffered text, which would fail at exit."""
        self.quiet = True
        with suppress(OSError, ValueError):
            to_nowhere(self.file.fileno())


class _WholeOutput(Table):
    """Output at least as wide as its columns' minimum; Rich would drop columns otherwise."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        least = sum((column.min_width or 0) + GAP for column in self.columns) - GAP
        return super().__rich_console__(
            console, options.update_width(max(options.max_width, least))
        )


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a plain table; `>` before a title aligns right, `=` keeps ids unwrapped.

    On a narrow screen other columns wrap; if that is not enough, lines get longer.
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
