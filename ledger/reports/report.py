"""The output of `breakeven ledger report`: spend, and the value of own engines.

The figures equal those of the dashboard: both add up the same cells, hours and comparisons. Spend
counts settled attempts. Bills of own engines are split into used, idle and unavailable, from closed
hours; the time since is separate and provisional until its hour closes. Bills are by pool; a team's
scope shows only the part that the team used.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from ledger.fleet.running import OpenHours, running
from ledger.invoices.adjusted import AdjustedParty, adjusted_by_party
from ledger.queries import reads as queries
from ledger.queries.reads import AttemptCell, ContractVersion, FlaggedAttempts, HourCell, Scope
from ledger.reporting_zone import reporting_zone
from ledger.reports.daily import DaySpend, spend_by_day
from ledger.reports.facts import comparisons, flagged
from ledger.reports.flag_sums import FlagSum, flag_sums


@dataclass(frozen=True, slots=True)
class ReportLine:
    """Attempts of one group. `unpriced` attempts are in no sum."""

    name: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int
    unpriced: int


@dataclass(frozen=True, slots=True)
class PoolLine:
    """Part of one pool's bill: used + idle + unavailable = bill.

    `share_ppm` is this pool's part of the GPUs and of the rate of a shared `machine`.
    """

    pool: str
    span_us: int
    bill_pusd: int
    used_pusd: int
    idle_pusd: int
    unavailable_pusd: int
    machine: str | None = None
    share_ppm: int = 1_000_000


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """Charge of one comparator for what one pool's engines served inside the SLO."""

    model: str
    comparator: str
    position: int
    avoided_pusd: int
    tokens: int
    scaled: bool
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    start_us: int
    end_us: int
    team: str | None  # whose attempts and comparisons these are; bills are of all teams
    team_used_pusd: int | None  # its part of the bills: closed hours, and the time since
    total: ReportLine
    teams: tuple[ReportLine, ...]
    models: tuple[ReportLine, ...]
    backends: tuple[ReportLine, ...]
    targets: tuple[ReportLine, ...]
    pools: tuple[PoolLine, ...]  # closed hours
    running: tuple[PoolLine, ...]  # since then
    comparators: tuple[ComparedLine, ...]
    refused: int
    flagged: tuple[FlaggedAttempts, ...]  # flagged attempts
    flags: tuple[FlagSum, ...]  # the same by flag alone
    simulated: bool  # whether anything in it came from a simulated part
    timezone: str  # whose days `days` are
    days: tuple[DaySpend, ...]  # together the period's spend
    adjustments: tuple[AdjustedParty, ...]  # to bills, of no team
    adjusted_pusd: int
    total_pusd: int  # of the days: APIs, own GPUs with idle time, ops and adjustments
    unrated: tuple[str, ...]  # pools whose GPU rate is unknown: they are in no bill


def report(connection: Connection, scope: Scope) -> Report:
    """Return the figures of a span, most expensive first."""
    cells = queries.cells(connection, scope, bucket_us=queries.DAY_US)
    closed = queries.hours(connection, scope, bucket_us=queries.DAY_US)
    contracts = {contract.pool: contract for contract in queries.contracts(connection)}
    rests = [running(connection, contract, closed, scope) for contract in contracts.values()]
    zone = reporting_zone(connection)
    days = tuple(spend_by_day(connection, scope, zone))
    marks = tuple(flagged(connection, scope))
    adjustments = tuple(adjusted_by_party(connection, scope))
    return Report(
        start_us=scope.start_us,
        end_us=scope.end_us,
        team=scope.team,
        team_used_pusd=_team_used_pusd(connection, rests, scope),
        total=_line("total", cells),
        teams=_by(cells, [cell.team for cell in cells]),
        models=_by(cells, [cell.model for cell in cells]),
        backends=_by(cells, [cell.backend for cell in cells]),
        targets=_by(cells, [cell.target for cell in cells]),
        pools=_pools(closed, contracts),
        running=tuple(_running_lines(rests, contracts, scope)),
        comparators=tuple(
            ComparedLine(
                comparison.model,
                comparison.comparator,
                comparison.position,
                comparison.avoided_pusd,
                comparison.tokens_in_slo,
                comparison.scaled,
                comparison.pool,
            )
            for comparison in comparisons(connection, scope)
        ),
        refused=sum(refusal.requests for refusal in queries.refusals(connection, scope)),
        flagged=marks,
        flags=tuple(flag_sums(marks)),
        simulated=any(cell.simulated for cell in cells),
        timezone=zone.name,
        days=days,
        adjustments=adjustments,
        adjusted_pusd=sum(line.pusd for line in adjustments),
        total_pusd=sum(day.total_pusd for day in days),
        unrated=_unrated(cells, contracts),
    )


def _by(cells: list[AttemptCell], names: list[str]) -> tuple[ReportLine, ...]:
    groups: dict[str, list[AttemptCell]] = {}
    for name, cell in zip(names, cells, strict=True):
        groups.setdefault(name, []).append(cell)
    lines = [_line(name, group) for name, group in groups.items()]
    return tuple(sorted(lines, key=lambda line: (-line.cost_pusd, line.name)))


def _line(name: str, cells: Iterable[AttemptCell]) -> ReportLine:
    found = list(cells)
    return ReportLine(
        name,
        sum(cell.attempts for cell in found),
        sum(cell.input_tokens for cell in found),
        sum(cell.output_tokens for cell in found),
        sum(cell.cost_pusd for cell in found),
        sum(cell.unpriced for cell in found),
    )


def _unrated(
    cells: Iterable[AttemptCell], contracts: Mapping[str, ContractVersion]
) -> tuple[str, ...]:
    """Return the pools without a known rate that have a contract or served requests."""
    known = {pool: contract.pusd_per_hour for pool, contract in contracts.items()}
    served = {cell.pool for cell in cells if cell.backend == "own" and cell.pool}
    return tuple(sorted(pool for pool in {*known, *served} if known.get(pool) is None))


def _pools(
    closed: Iterable[HourCell], contracts: Mapping[str, ContractVersion]
) -> tuple[PoolLine, ...]:
    """Return the bills of pools, which a team's scope does not narrow."""
    groups: dict[str, list[HourCell]] = {}
    for cell in closed:
        groups.setdefault(cell.pool, []).append(cell)
    return tuple(
        PoolLine(
            pool,
            sum(cell.span_us for cell in cells),
            sum(cell.bill_pusd for cell in cells),
            sum(cell.used_pusd for cell in cells),
            sum(cell.idle_pusd for cell in cells),
            sum(cell.unavailable_pusd for cell in cells),
            contracts[pool].machine,
            contracts[pool].share_ppm,
        )
        for pool, cells in groups.items()
    )


def _team_used_pusd(connection: Connection, rests: Iterable[OpenHours], scope: Scope) -> int | None:
    if scope.team is None:
        return None
    hours = queries.hours_by_team(connection, scope, bucket_us=queries.DAY_US)
    closed = sum(hour.used_pusd for hour in hours)
    return closed + sum(rest.used_pusd.get(scope.team, 0) for rest in rests)


def _running_lines(
    rests: Iterable[OpenHours], contracts: Mapping[str, ContractVersion], scope: Scope
) -> Iterator[PoolLine]:
    for rest in rests:
        if rest.bill_pusd:
            yield PoolLine(
                rest.pool,
                scope.end_us - rest.from_us,
                rest.bill_pusd,
                sum(rest.used_pusd.values()),
                rest.idle_pusd,
                rest.unavailable_pusd,
                contracts[rest.pool].machine,
                contracts[rest.pool].share_ppm,
            )
