"""What `breakeven ledger report` prints: where the money went, and what own engines were worth.

The figures are the dashboard's: both add up the same cells, hours and comparisons. Spend counts
what was settled; own engines' bills count closed hours, used, idle and unavailable apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from ledger import queries
from ledger.queries import Cell, Scope


@dataclass(frozen=True, slots=True)
class Line:
    """One group's attempts. `unpriced` ones are in no sum."""

    name: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int
    unpriced: int


@dataclass(frozen=True, slots=True)
class PoolLine:
    """Closed hours of one pool: used + idle + unavailable = bill."""

    pool: str
    hours: int
    bill_pusd: int
    used_pusd: int
    idle_pusd: int
    unavailable_pusd: int


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """What a comparator would have charged for what own engines served inside the SLO."""

    model: str
    comparator: str
    position: int
    avoided_pusd: int
    tokens: int
    scaled: bool


@dataclass(frozen=True, slots=True)
class Report:
    start_us: int
    end_us: int
    total: Line
    teams: tuple[Line, ...]
    models: tuple[Line, ...]
    backends: tuple[Line, ...]
    targets: tuple[Line, ...]
    pools: tuple[PoolLine, ...]
    comparators: tuple[ComparedLine, ...]
    refused: int
    simulated: bool  # whether anything in it came from a simulated part


def report(connection: Connection, scope: Scope) -> Report:
    """The span's figures, dearest first."""
    cells = queries.cells(connection, scope, bucket_us=queries.DAY_US)
    return Report(
        start_us=scope.start_us,
        end_us=scope.end_us,
        total=_line("total", cells),
        teams=_by(cells, [cell.team for cell in cells]),
        models=_by(cells, [cell.model for cell in cells]),
        backends=_by(cells, [cell.backend for cell in cells]),
        targets=_by(cells, [cell.target for cell in cells]),
        pools=_pools(connection, scope),
        comparators=tuple(
            ComparedLine(
                one.model,
                one.comparator,
                one.position,
                one.avoided_pusd,
                one.tokens_in_slo,
                one.scaled,
            )
            for one in queries.comparisons(connection, scope)
        ),
        refused=sum(one.requests for one in queries.refusals(connection, scope)),
        simulated=any(cell.simulated for cell in cells),
    )


def _by(cells: list[Cell], names: list[str]) -> tuple[Line, ...]:
    groups: dict[str, list[Cell]] = {}
    for name, cell in zip(names, cells, strict=True):
        groups.setdefault(name, []).append(cell)
    lines = [_line(name, group) for name, group in groups.items()]
    return tuple(sorted(lines, key=lambda line: (-line.cost_pusd, line.name)))


def _line(name: str, cells: Iterable[Cell]) -> Line:
    found = list(cells)
    return Line(
        name,
        sum(cell.attempts for cell in found),
        sum(cell.input_tokens for cell in found),
        sum(cell.output_tokens for cell in found),
        sum(cell.cost_pusd for cell in found),
        sum(cell.unpriced for cell in found),
    )


def _pools(connection: Connection, scope: Scope) -> tuple[PoolLine, ...]:
    """Bills are the pools', whoever asks: a team's scope does not narrow them."""
    found: dict[str, PoolLine] = {}
    for cell in queries.hours(connection, scope, bucket_us=queries.DAY_US):
        before = found.get(cell.pool, PoolLine(cell.pool, 0, 0, 0, 0, 0))
        found[cell.pool] = PoolLine(
            cell.pool,
            before.hours + cell.hours,
            before.bill_pusd + cell.bill_pusd,
            before.used_pusd + cell.used_pusd,
            before.idle_pusd + cell.idle_pusd,
            before.unavailable_pusd + cell.unavailable_pusd,
        )
    return tuple(found.values())
