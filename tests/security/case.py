"""What a case is: one goal, one figure with its bar, and a control whose figure must miss it."""

from collections.abc import Callable
from dataclasses import dataclass, field


class MissingPart(Exception):
    """A real part, or a right, that this machine does not have."""


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """`size`: how much was tried. `faults`: what else must not be, in words."""

    value: float
    size: str = ""
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """`broken`: with the protection off. `full`: at the size that the goal names, not the quick."""

    broken: bool = False
    full: bool = True
    seed: int = 1
    say: Callable[[str], None] = print


@dataclass(frozen=True, slots=True)
class Case:
    """`least`: the value must be at least `bar`, else at most. `control`: what is switched off.

    `play` gets `Given(broken=True)` for its control.
    """

    goal: str
    figure: str
    play: Callable[[Given], CaseFigures]
    control: str
    bar: float = 0
    unit: str = ""
    least: bool = False
    about: str = field(default="", compare=False)

    def holds(self, found: CaseFigures) -> bool:
        within = found.value >= self.bar if self.least else found.value <= self.bar
        return within and not found.faults

    @property
    def bound(self) -> str:
        return f"{'>=' if self.least else '<='} {self.bar:g}{' ' * bool(self.unit)}{self.unit}"
