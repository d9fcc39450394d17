"""What a scene is: faults played on a running ledger, and five counters that must be zero.

A scene is played on each database. `broken` switches its protection off: its figures must be red
then, or it shows nothing.
"""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

DATABASES = ("sqlite", "postgres")
COUNTERS = ("lost", "duplicated", "difference_pusd", "overspent_pusd", "unjustified")


@dataclass(slots=True)
class SceneFigures:
    """A counter that a scene does not have is None. `faults`: figures out of their bounds."""

    size: str = ""  # how much of it there was
    lost: int | None = None  # finished answers without their one row
    duplicated: int | None = None  # rows, entries or calls that are there twice
    difference_pusd: int | None = None  # between what targets did, rows, postings and budgets
    overspent_pusd: int | None = None
    unjustified: int | None = None  # refusals while there was room
    figures: dict[str, float | int | str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    skipped: str = ""  # why it could not be played

    @property
    def red(self) -> list[str]:
        counted = [name for name in COUNTERS if getattr(self, name)]
        return [f"{name} {getattr(self, name)}" for name in counted] + self.faults

    def expect(self, name: str, value: float | str, *, holds: bool) -> None:
        """A figure with its bound."""
        self.figures[name] = value
        if not holds:
            self.faults.append(f"{name} {value}")

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "red": self.red}


@dataclass(frozen=True, slots=True)
class Given:
    """How a scene is to be played; `scale` is a part of its full size, `jobs` count processes.

    `way` is `ledger.journal_writes` of its hosts; empty: their default.
    """

    database: str = "sqlite"
    scale: float = 1.0
    broken: bool = False
    seed: int = 1
    say: Callable[[str], None] = print
    jobs: int = 1
    way: str = ""

    def of(self, full: int, *, least: int = 1) -> int:
        return max(least, round(full * self.scale))

    @property
    def rng(self) -> random.Random:
        return random.Random(self.seed)


@dataclass(frozen=True, slots=True)
class Scene:
    """`rules` are the goals that it shows; `control` says what `broken` takes away."""

    name: str
    rules: str
    about: str
    play: Callable[[Given], SceneFigures]
    control: str
    databases: tuple[str, ...] = DATABASES
