"""Rich draws here for commands: tables, and the output of those that run for long."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from gateway.cli.output import to_nowhere

FOLDED = 3  # characters: what words of a table keep where a screen has no room
GAP = 2  # characters between columns


class PipeSafeConsole(Console):
    """Writes for a command that runs for long, which goes on when its reader has left.

    Rich ends the program then, and a terminal that was closed raises at each line: a gateway would
    stop because of who looked at it.
    """

    def print_line(self, line: str) -> None:
        try:
            self.print(line, markup=False)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Let the rest go nowhere, what was not written yet, too, or the exit would fail at it."""
        self.quiet = True
        with suppress(OSError, ValueError):
            to_nowhere(self.file.fileno())


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
