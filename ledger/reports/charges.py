"""Charges of APIs by time and dimension, each token kind with its unit price.

The database adds up attempts to which one price applies: equal version and tier, prompts between
the same thresholds. The cost is then linear, so tokens x price of the sums equals the sum of the
costs exactly. Searches and audio seconds are kinds too; audio without token counts is separate,
because a price may list both. Regional surcharges, and sometimes seconds, are rounded per attempt:
the booked sum is divided over the kinds by largest remainder. A cost that does not follow from its
price (a lost attempt at its bound) is one charge per request. Attempts without a price are only
counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, case, func, literal, or_, select

from ledger.journals.token_kinds import (
    PER_TOKEN,
    PER_UNIT,
    PROMPT_KINDS,
    TOKEN,
    TOKEN_KINDS,
    PriceUnit,
    TokenCounts,
)
from ledger.money import PPM, split_largest_remainder
from ledger.orm.books import LOST
from ledger.orm.tables import AttemptRow, exact_sum, token_column, token_sum
from ledger.prices.book import STANDARD, Price, TokenRates, UnpricedTierError, rates_for, tier_of
from ledger.prices.rates import is_charged, request_fee_pusd, unit_pusd
from ledger.spans import Scope, total

REQUESTS = "requests"  # a fee per request
UNSETTLED = "unsettled"  # perhaps billed: stands at its bound until evidence comes
UNEXPLAINED = "unexplained"  # the booked cost, not tokens x price
METERS = {
    **{kind.charge: kind.meter for kind in TOKEN_KINDS},
    REQUESTS: "Requests",
    UNSETTLED: "Requests without a known outcome",
    UNEXPLAINED: "Requests at their booked cost",
}
"""What people read of each kind of charge."""
ROWS_AT_ONCE = 2_000

PROMPT = token_sum(PROMPT_KINDS)
# Attempts in which another kind replaces this one are added up separately.
_UNLESS = sorted({kind.unless for kind in PER_UNIT if kind.unless is not None})
_COUNTS = lcm(*(kind.unit.counts for kind in TOKEN_KINDS))


@dataclass(frozen=True, slots=True)
class PriceGroup:
    """Attempts that one price applies to. `key` holds the values of the requested dimensions."""

    start_us: int
    key: tuple[Any, ...]
    version: int | None
    tier: str  # in the price book's words
    prompt_tokens: int  # of one of them: all lie between the same thresholds
    first_us: int
    lost: bool
    requests: int
    tokens: TokenCounts
    cost_pusd: int


@dataclass(frozen=True, slots=True)
class ChargeLine:
    """One kind of a group. Prices are pico-USD per unit; `list_pusd` is at the public price.

    `quantity` is in units of `unit`, or in requests for fees and for unsettled or unexplained
    costs.
    """

    kind: str
    unit: PriceUnit | None
    quantity: int | Fraction
    unit_pusd: Fraction
    list_unit_pusd: Fraction
    cost_pusd: int
    list_pusd: int


@dataclass(frozen=True, slots=True)
class _Part:
    kind: str
    unit: PriceUnit | None
    quantity: int | Fraction
    rate_pusd: int


def groups(
    connection: Connection,
    scope: Scope,
    *,
    bucket_us: int,
    by: Sequence[Any],
    cuts: Sequence[int],
    where: Sequence[ColumnElement[bool]] = (),
) -> Iterator[PriceGroup]:
    """Yield the scope's priced API attempts by bucket, `by` and price, in bucket order."""
    start: ColumnElement[int] = AttemptRow.opened_us - AttemptRow.opened_us % bucket_us
    lost = case((AttemptRow.status == LOST, 1), else_=0)
    names: list[Any] = [
        start,
        *by,
        AttemptRow.price_version,
        AttemptRow.tier,
        lost,
        *(case((token_column(field) > 0, 1), else_=0) for field in _UNLESS),
        _bracket(cuts),
    ]
    # A request that failed before any work pays no fee, so it is not counted for fees.
    used = (token_column(kind.field) > 0 for kind in TOKEN_KINDS)
    charged = or_(AttemptRow.cost_pusd != 0, *used)
    named = [name.label(f"by_{place}") for place, name in enumerate(names)]
    statement = (
        select(
            *named,
            func.max(PROMPT),
            func.min(AttemptRow.opened_us),
            func.count(),
            exact_sum(AttemptRow.cost_pusd),
            *(total(token_column(kind.field)) for kind in TOKEN_KINDS),
        )
        .where(AttemptRow.backend == "api", AttemptRow.cost_pusd.is_not(None), charged, *where)
        .group_by(*(name.name for name in named))
        .order_by("by_0")
    )
    options = {"yield_per": ROWS_AT_ONCE}
    places, figures = len(by) + 1, len(names)
    for row in connection.execute(scope.narrow(statement), execution_options=options):
        version, tier, was_lost = row[places : places + 3]
        prompt, first_us, count, cost, *tokens = row[figures:]
        yield PriceGroup(
            row[0], tuple(row[1:places]), version, tier_of(tier), prompt, first_us,
            bool(was_lost), count, TokenCounts(*tokens), cost,
        )  # fmt: skip


def unpriced(connection: Connection, scope: Scope) -> int:
    """Return the number of settled attempts of the scope without a price."""
    statement = select(func.count()).where(
        AttemptRow.settled_us.is_not(None), AttemptRow.cost_pusd.is_(None)
    )
    return int(connection.execute(scope.narrow(statement)).scalar_one())


def cuts_of(prices: Mapping[int, Price]) -> list[int]:
    """Return all prompt sizes above which some price changes; inclusive thresholds minus one."""
    return sorted(
        {
            schedule.above_tokens - (1 if price.terms.inclusive else 0)
            for price in prices.values()
            for schedule in price.terms.schedules
            if schedule.above_tokens
        }
    )


def charges(group: PriceGroup, price: Price | None, listed: Price | None) -> list[ChargeLine]:
    """Return the group's cost by kind; the amounts add up to the booked cost.

    `listed` is the public price, if known.
    """
    if group.lost:
        return _whole(group, UNSETTLED)
    if price is None:
        return _whole(group, UNEXPLAINED)
    parts = _parts(group, price)
    factor = PPM + price.terms.uplift_ppm
    amounts = [Fraction(part.quantity * part.rate_pusd) for part in parts]
    off = group.cost_pusd * PPM - sum(amounts) * factor
    allowed = group.requests * _rounding_bound(parts, factor)
    if not -allowed <= 2 * off <= allowed or any(part.quantity < 0 for part in parts):
        return _whole(group, UNEXPLAINED)
    if not any(amounts):
        return []
    public = {part.kind: part.rate_pusd for part in _parts(group, listed)} if listed else {}
    uplift = PPM + (listed.terms.uplift_ppm if listed else 0)
    shares = split_largest_remainder(group.cost_pusd, [int(amount * _COUNTS) for amount in amounts])
    return [
        _charge(
            part,
            share,
            Fraction(part.rate_pusd * factor, PPM),
            Fraction(public[part.kind] * uplift, PPM) if part.kind in public else None,
        )
        for part, share in zip(parts, shares, strict=True)
        if part.quantity
    ]


def _charge(part: _Part, share: int, unit: Fraction, public: Fraction | None) -> ChargeLine:
    if public is None or public == unit:
        return ChargeLine(part.kind, part.unit, part.quantity, unit, unit, share, share)
    listed = round(public * part.quantity)
    return ChargeLine(part.kind, part.unit, part.quantity, unit, public, share, listed)


def _parts(group: PriceGroup, price: Price) -> list[_Part]:
    """Return every token kind once; parts of the output are subtracted from it."""
    tokens, rates = group.tokens, _rates(price, group.tier, group.prompt_tokens)
    plain = msgspec.structs.replace(tokens, output=tokens.plain_output)
    parts = [
        _Part(kind.charge, TOKEN, getattr(plain, kind.field), getattr(rates, kind.price))
        for kind in PER_TOKEN
    ]
    for kind in PER_UNIT:
        pusd = unit_pusd(price.terms, kind, group.tier)
        if pusd and not is_charged(kind.unless, tokens, rates):
            count = Fraction(getattr(tokens, kind.field), kind.unit.counts)
            parts.append(_Part(kind.charge, kind.unit, count, pusd))
    if fee := request_fee_pusd(price.terms, group.tier):
        parts.append(_Part(REQUESTS, None, group.requests, fee))
    return parts


def _rounding_bound(parts: Sequence[_Part], factor: int) -> int:
    """Return a bound of one attempt's rounding error against quantity x price, x 2 `PPM`."""
    parted = any(part.unit is not None and part.rate_pusd % part.unit.counts for part in parts)
    return (PPM if factor != PPM else 0) + (factor if parted else 0)


def _rates(price: Price, tier: str, prompt: int) -> TokenRates:
    """Return the rates as attempts are booked: a tier without a price pays standard rates."""
    try:
        return rates_for(price, tier, prompt)
    except UnpricedTierError:
        return rates_for(price, STANDARD, prompt)


def _whole(group: PriceGroup, kind: str) -> list[ChargeLine]:
    if not group.cost_pusd:
        return []
    unit = Fraction(group.cost_pusd, group.requests)
    return [ChargeLine(kind, None, group.requests, unit, unit, group.cost_pusd, group.cost_pusd)]


def _bracket(cuts: Sequence[int]) -> ColumnElement[int]:
    """Return a column with the index of the prompt's bracket between the thresholds."""
    if not cuts:
        return literal(0)
    return case(*((cut >= PROMPT, place) for place, cut in enumerate(cuts)), else_=len(cuts))


def column_conditions(values: Mapping[Any, Sequence[Any]]) -> list[ColumnElement[bool]]:
    """Return conditions on columns of attempts; an empty list of values excludes nothing."""
    return [column.in_(some) for column, some in values.items() if some]
