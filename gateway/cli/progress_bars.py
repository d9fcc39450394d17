"""Progress bars of long commands, on stderr."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def bars() -> Progress:
    """Return progress bars for a known number of steps."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(emoji=False, stderr=True),
    )  # fmt: skip


def progress(*, quiet: bool = False) -> Progress:
    """Return the progress display of all other long work."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(emoji=False, stderr=True),
        disable=quiet,
    )
