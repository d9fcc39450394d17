"""Shows the progress of long commands beside their output, not in it."""

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
    """Bars of what has a known number of steps."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(emoji=False, stderr=True),
    )  # fmt: skip


def progress(*, quiet: bool = False) -> Progress:
    """The one look of everything else that takes long."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(emoji=False, stderr=True),
        disable=quiet,
    )
