"""Usage and costs by bucket, as on an organisation's usage and costs pages.

Usage counts attempts by opening time: tokens of every kind, and requests by their first attempt, so
that a fallback is not a second request. Costs are API charges (`charges`), closed GPU hours by team
(`hourshares`) and invoice differences (`posted_adjustments`), which together equal the ledger.
Teams bear GPU hours, so a GPU hour has no key or user, and a filter by keys excludes it. No team
bears adjustments.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from ledger.fleet.hourshares import HourShare, hour_shares
from ledger.invoices.adjusted import Adjustment, posted_adjustments
from ledger.journals.token_kinds import PROMPT_KINDS
from ledger.orm.tables import AttemptRow, exact_sum, token_column, token_sum
from ledger.prices.stored import every_price
from ledger.reports.charges import PROMPT, ChargeLine, charges, column_conditions, cuts_of, groups
from ledger.reports.usage_filters import UsageFilters
from ledger.spans import HOUR_US, Scope, rows, total

CELLS_LIMIT = 20_000
HOURS = "hours"
_WRITES = [kind for kind in PROMPT_KINDS if kind.field.startswith("cache_write")]
BATCH_PREFIX = "batch_"  # of the request ids of batch lines
_COLUMNS: Mapping[str, Any] = {
    "team": AttemptRow.team_id,
    "key": AttemptRow.key_id,
    "user": AttemptRow.user_id,
    "model": AttemptRow.model,
    "tier": func.coalesce(AttemptRow.tier, "default"),
    "batch": AttemptRow.request_id.startswith(BATCH_PREFIX, autoescape=True),
}


class TooManyCells(ValueError):
    """A result with too many groups: use fewer buckets, or fewer fields to group by."""


@dataclass(frozen=True, slots=True)
class UsageCell:
    """Attempts of one bucket with equal `key`, the values of the fields to group by."""

    start_us: int
    key: tuple[str | None, ...]
    requests: int
    prompt_tokens: int  # of every kind
    cached_tokens: int
    cache_write_tokens: int
    audio_input_tokens: int
    output_tokens: int
    audio_output_tokens: int
    pictures: int
    characters: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class CostCell:
    """Cost of one bucket; `item` and `quantity` are set only if items were requested."""

    start_us: int
    key: tuple[str | None, ...]
    item: str | None
    pusd: int
    quantity: int | float | None
    unit: str | None


def usage_cells(
    connection: Connection,
    scope: Scope,
    filters: UsageFilters,
    *,
    kinds: Collection[str],
    by: Sequence[str],
    bucket_us: int,
) -> list[UsageCell]:
    """Return usage in bucket order. `by` lists team, key, user, model, tier or batch."""
    start = AttemptRow.opened_us - AttemptRow.opened_us % bucket_us
    named = [start.label("by_0")]
    named += [_COLUMNS[name].label(f"by_{place}") for place, name in enumerate(by, start=1)]
    statement = (
        select(
            *named,
            total(case((AttemptRow.attempt_no == 1, 1), else_=0)),
            total(PROMPT),
            total(token_column("cached")),
            total(token_sum(_WRITES)),
            total(token_column("audio_input")),
            total(token_column("output")),
            total(token_column("audio_output")),
            total(token_column("pictures")),
            total(token_column("characters")),
            total(token_column("audio_ms")),
        )
        .where(AttemptRow.kind.in_(sorted(kinds)), *_conditions(filters))
        .group_by(*(name.name for name in named))
        .order_by(*(name.name for name in named))
        .limit(CELLS_LIMIT + 1)
    )
    places = len(named)
    found = rows(connection, scope.narrow(statement))
    if len(found) > CELLS_LIMIT:
        raise TooManyCells
    return [UsageCell(row[0], tuple(row[1:places]), *row[places:]) for row in found]


def cost_cells(
    connection: Connection,
    scope: Scope,
    filters: UsageFilters,
    *,
    by: Sequence[str],
    items: bool,
    bucket_us: int,
) -> list[CostCell]:
    """Return costs in bucket order, API charges before GPU hours.

    `by` lists team, key or user.
    """
    found: dict[tuple[Any, ...], CostCell] = {}
    api = _api_items if items else _api_sums
    for cell in api(connection, scope, filters, by, bucket_us):
        _add(found, cell)
    if not (filters.keys or filters.users or filters.models):
        for share in hour_shares(connection, scope, bucket_us=bucket_us):
            if share.pusd and (not filters.teams or share.team in filters.teams):
                _add(found, _gpu_cell(share, by, items=items))
    if filters == UsageFilters():
        for adjustment in posted_adjustments(connection, scope, bucket_us=bucket_us):
            _add(found, _adjusted_cell(adjustment, by, items=items))
    return sorted(found.values(), key=lambda cell: cell.start_us)


def _api_sums(
    connection: Connection, scope: Scope, filters: UsageFilters, by: Sequence[str], bucket_us: int
) -> Iterator[CostCell]:
    named = [(AttemptRow.opened_us - AttemptRow.opened_us % bucket_us).label("by_0")]
    named += [_COLUMNS[name].label(f"by_{place}") for place, name in enumerate(by, start=1)]
    statement = (
        select(*named, exact_sum(AttemptRow.cost_pusd))
        .where(
            AttemptRow.backend == "api", AttemptRow.cost_pusd.is_not(None), *_conditions(filters)
        )
        .group_by(*(name.name for name in named))
    )
    for start_us, *key, pusd in rows(connection, scope.narrow(statement)):
        if pusd:
            yield CostCell(start_us, tuple(key), None, pusd, None, None)


def _api_items(
    connection: Connection, scope: Scope, filters: UsageFilters, by: Sequence[str], bucket_us: int
) -> Iterator[CostCell]:
    prices = {price.version: price for price in every_price(connection)}
    found = groups(
        connection,
        scope,
        bucket_us=bucket_us,
        by=[AttemptRow.target, *(_COLUMNS[name] for name in by)],
        cuts=cuts_of(prices),
        where=_conditions(filters),
    )
    for group in found:
        target, *key = group.key
        for charge in charges(group, prices.get(group.version or 0), None):
            item, (quantity, unit) = f"{target}, {charge.kind}", _counted(charge)
            yield CostCell(group.start_us, tuple(key), item, charge.cost_pusd, quantity, unit)


def _counted(charge: ChargeLine) -> tuple[int | float, str | None]:
    """Return a charge's quantity and its unit on the pages; requests have no unit."""
    if charge.unit is None:
        return int(charge.quantity), None
    if charge.unit.counts == charge.unit.per_page == 1:
        return int(charge.quantity), charge.unit.page_name
    return float(charge.quantity / charge.unit.per_page), charge.unit.page_name


def _gpu_cell(share: HourShare, by: Sequence[str], *, items: bool) -> CostCell:
    key = tuple(share.team if name == "team" else None for name in by)
    if not items:
        return CostCell(share.start_us, key, None, share.pusd, None, None)
    hours = share.engine_us / HOUR_US
    return CostCell(
        share.start_us, key, f"pool:{share.pool}, {share.bearer}", share.pusd, hours, HOURS
    )


def _adjusted_cell(adjustment: Adjustment, by: Sequence[str], *, items: bool) -> CostCell:
    item = f"{adjustment.party}, adjustments" if items else None
    return CostCell(adjustment.start_us, (None,) * len(by), item, adjustment.pusd, None, None)


def _add(found: dict[tuple[Any, ...], CostCell], cell: CostCell) -> None:
    place = (cell.start_us, cell.key, cell.item)
    before = found.get(place)
    if before is not None:
        more = None if cell.quantity is None else cell.quantity + (before.quantity or 0)
        pusd = cell.pusd + before.pusd
        cell = CostCell(cell.start_us, cell.key, cell.item, pusd, more, cell.unit)
    found[place] = cell
    if len(found) > CELLS_LIMIT:
        raise TooManyCells


def _conditions(filters: UsageFilters) -> list[ColumnElement[bool]]:
    columns = {
        "team": filters.teams,
        "key": filters.keys,
        "user": filters.users,
        "model": filters.models,
    }
    found = column_conditions({_COLUMNS[name]: values for name, values in columns.items()})
    of_batches: ColumnElement[bool] = _COLUMNS["batch"]
    if filters.batch is None:
        return found
    return [*found, of_batches if filters.batch else ~of_batches]
