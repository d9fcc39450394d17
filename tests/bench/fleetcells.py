"""Cells of the fleet bench: what each plays, what each way of sizing spent, and those done before.

Finished cells are kept beside the sources that they were played with, so a bench that was broken
off goes on where it ended, and one of other sources begins anew.
"""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from fleetplay import Bill, RentRule, clairvoyant, fixed, play
from fleetrules import PlannerRule, rivals
from fleetseries import SHAPES, Series, recorded, shocks

STARTS_S = (30.0, 180.0, 900.0)
MODEST = (1.3, 2.0, 3.0)  # prices up to three times break-even
DEAR = (5.0, 10.0)
CHEAP = (0.3, 0.5, 0.8)
SHOCKS = ("day", "step", "flash crowd", "API outage", "spot market")
SECOND, HOURLY = RentRule(), RentRule(180.0, 3600, 3600)
DIFFER = 1.05  # fixed to clairvoyant, from which the gap between them is judged
HERE = Path(__file__).parent
SOURCES = (*HERE.glob("fleet*.py"), *(HERE.parents[1] / "router" / "scaling").glob("*.py"))


@dataclass(frozen=True)
class CellPlan:
    """What one cell plays; without a price the series has its own."""

    kind: str
    series: str
    step_s: int
    price: float | None = None
    billing: RentRule = SECOND

    def read(self, folder: Path) -> Series:
        if self.kind == "shock":
            return shocks(self.step_s, folder=folder)[SHOCKS.index(self.series)]
        found = recorded(self.series, self.step_s, whole=self.kind == "whole", folder=folder)
        return found if self.price is None else found.priced(self.price)


@dataclass(frozen=True)
class Cell:
    """One series at one price with one billing, and what each way of sizing spent a day."""

    kind: str
    series: str
    step_s: int
    price: float
    start_s: float
    unit_s: int
    best: float
    fixed: float
    ours: float
    dollar: float
    rivals: dict[str, float]
    starts: int
    best_starts: int
    cpu_ms: float
    slowest_ms: float

    @property
    def closed(self) -> float:
        """The share of the gap between the best fixed number and the clairvoyant's."""
        return self._closed(self.ours)

    @property
    def dollar_closed(self) -> float:
        return self._closed(self.dollar)

    @property
    def over(self) -> float:
        return self.ours / self.best

    @property
    def tuned(self) -> tuple[str, float]:
        """The best online rule in hindsight."""
        name = min(self.rivals, key=lambda name: self.rivals[name])
        return name, self.rivals[name]

    @property
    def differs(self) -> bool:
        return self.fixed > DIFFER * self.best

    def _closed(self, total: float) -> float:
        return (self.fixed - total) / (self.fixed - self.best)


def planned(steps: tuple[int, ...]) -> Iterator[CellPlan]:
    """Yield the cells of these ages of information, in seconds."""
    for step_s in steps:
        coarse = step_s >= 600
        for name in SHAPES:
            yield CellPlan("whole", name, step_s)
            yield CellPlan("recorded", name, step_s)
            if step_s < 60:
                continue
            for start_s in STARTS_S:
                if start_s != SECOND.start_s:
                    yield CellPlan("recorded", name, step_s, billing=RentRule(start_s))
            for price in (*CHEAP, *MODEST, *DEAR) if coarse else (0.5, 1.3, 3.0, 10.0):
                yield CellPlan("recorded", name, step_s, price)
            for price in (2.0, 10.0) if coarse else (2.0,):
                yield CellPlan("recorded", name, step_s, price, HOURLY)
        if step_s >= 60:
            for name in SHOCKS:
                yield CellPlan("shock", name, step_s)


def play_cell(plan: CellPlan, folder: Path) -> Cell:
    """Play one. At fine steps only what is compared with a tuned rule plays all rivals."""
    series, billing = plan.read(folder), plan.billing
    planner = PlannerRule(series, billing)
    best, ours = clairvoyant(series, billing), play(series, billing, planner)
    dear = series.prices.max() > max(MODEST)
    everyone = series.step_s >= 600 or plan.kind == "shock" or dear
    others = {
        name: play(series, billing, rule)
        for name, rule in rivals(series, billing).items()
        if everyone or name in {"dollar rule", "lazy provisioning"}
    }
    return Cell(
        plan.kind, series.name, series.step_s, float(series.prices.mean()), billing.start_s,
        billing.unit_s, _daily(best, series), _daily(fixed(series)[0], series),
        _daily(ours, series), _daily(others["dollar rule"], series),
        {name: _daily(bill, series) for name, bill in others.items()}, ours.starts, best.starts,
        planner.cpu_s / len(series.rates) * 1e3, planner.slowest_s * 1e3,
    )  # fmt: skip


def _daily(bill: Bill, series: Series) -> float:
    return bill.total / series.days


def play_cells(
    plans: list[CellPlan], folder: Path, kept: Path, processes: int
) -> Iterator[tuple[CellPlan, Cell]]:
    """Yield each cell as it ends; those in the file `kept` are not played again."""
    known = _FinishedCells(kept, folder)
    left = []
    for plan in plans:
        cell = known.cell(plan)
        if cell is None:
            left.append(plan)
        else:
            yield plan, cell
    with ProcessPoolExecutor(max(1, processes)) as pool:
        # The longest come first, so that no process ends long after the others.
        left.sort(key=lambda plan: (plan.step_s, plan.series))
        playing = {pool.submit(play_cell, plan, folder): plan for plan in left}
        for done in as_completed(playing):
            cell = done.result()
            known.keep(playing[done], cell)
            yield playing[done], cell


class _FinishedCells:
    """Finished cells of the present sources and rates, a line each."""

    def __init__(self, path: Path, folder: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(np.__version__.encode())
        for source in (*sorted(SOURCES), *sorted(folder.glob("servegen_*_rate10min.csv.gz"))):
            digest.update(source.read_bytes())
        self._path, self._digest = path, digest.hexdigest()
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        self._cells = {
            row["plan"]: Cell(**row["cell"]) for row in rows if row["sources"] == self._digest
        }

    def cell(self, plan: CellPlan) -> Cell | None:
        return self._cells.get(str(plan))

    def keep(self, plan: CellPlan, cell: Cell) -> None:
        row = {"sources": self._digest, "plan": str(plan), "cell": asdict(cell)}
        with self._path.open("a") as lines:
            lines.write("\n" + json.dumps(row))  # the last line may have been cut
