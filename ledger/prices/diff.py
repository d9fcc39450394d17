"""A plan of the changes that a price import would make, for approval.

`planned` compares a source with the stored versions. It returns the rows to store and what each row
does to the price in force. Prices that are stored unchanged make no row. This module does no I/O.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ledger.prices.bands import PriceBands
from ledger.prices.book import Price, PriceBook
from ledger.prices.drafts import DraftChanges, PriceDraft, diff
from ledger.prices.rates import KINDS, STANDARD, PriceError, PriceTerms, is_unlisted

PER_TOKEN, PER_UNIT, SHARE = "usd_per_million", "usd", "percent"  # how an amount is read
Place = tuple[str, int, str]  # tier, above tokens, kind


class PriceStatus(StrEnum):
    """The effect of a row on the price in force.

    `RESTATED`: the same amounts from another source. `SHADOWED`: another book's price stays in
    force. `REMOVED`: the price ends. `DROPPED`: the market list no longer has the name; its price
    stays, because the model may still be served.
    """

    ADDED = "added"
    CHANGED = "changed"
    RESTATED = "restated"
    SHADOWED = "shadowed"
    REMOVED = "removed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class PriceAmount:
    """The old and new price of one kind.

    Amounts are pico-USD per token or unit, or parts per million for a surcharge.
    """

    tier: str
    above_tokens: int
    kind: str
    unit: str
    old: int | None
    new: int | None

    @property
    def percent(self) -> float | None:
        """Return the change in percent, or `None` if there is no old or no new amount."""
        if not self.old or self.new is None:
            return None
        return round((self.new - self.old) * 100 / self.old, 2)


@dataclass(frozen=True, slots=True)
class PriceChange:
    """One name's price in force before and after an import, and the amounts that differ."""

    name: str
    status: PriceStatus
    since_us: int
    until_us: int | None
    before: Price | None
    after: Price | None
    amounts: tuple[PriceAmount, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceImportPlan:
    """The plan of one import: the rows that approval stores, and every change by name.

    `entries` also list the names that the source has dropped. `doubts` are implausible prices, as
    name and reason; approval stores them as well.
    """

    book: str
    at_us: int
    changes: DraftChanges
    entries: tuple[PriceChange, ...]
    doubts: tuple[tuple[str, str], ...] = ()

    def count(self, status: PriceStatus) -> int:
        return sum(entry.status is status for entry in self.entries)


def planned(
    stored: Sequence[Price],
    drafts: Iterable[PriceDraft],
    *,
    book: str,
    only: Callable[[str], bool],
    at_us: int,
) -> PriceImportPlan:
    """Return the plan to import drafts into `book`, for the names that `only` accepts.

    Raises `PriceError` for drafts that cannot be used or have ended.
    """
    wanted = [draft for draft in drafts if only(draft.name)]
    ended = [draft.name for draft in wanted if (draft.effective_until_us or at_us + 1) <= at_us]
    if ended:
        raise PriceError("\n".join(f"{book}: {name}: the price has ended" for name in ended))
    mine = [row for row in stored if row.book == book and only(row.name)]
    others = frozenset(row.name for row in stored if row.book != book)
    changes = diff(mine, wanted, at_us=at_us, priced=others)
    now = PriceBook(stored)
    made = changes.prices(now.newest_version + 1)
    entries = [*_entries(now, now.with_prices(made), made, at_us)]
    entries += [
        PriceChange(price.name, PriceStatus.DROPPED, at_us, None, price, price)
        for price in changes.gone
    ]
    entries.sort(key=lambda entry: (entry.name, entry.since_us))
    bands = PriceBands(now, at_us)
    doubts = [(price.name, words) for price in made if (words := bands.doubt(price))]
    return PriceImportPlan(book, at_us, changes, tuple(entries), tuple(dict.fromkeys(doubts)))


def approved(plan: PriceImportPlan) -> tuple[tuple[PriceDraft, bool, int | None], ...]:
    """Return the part of a plan that a person approves.

    Plans made at different times are equal in this part as long as no price has changed.
    """
    return tuple(
        (row.draft, row.withdrawn, None if since == plan.at_us else since)
        for row in plan.changes.rows
        for since in (row.effective_from_us,)
    )


def _entries(
    now: PriceBook, then: PriceBook, made: Iterable[Price], at_us: int
) -> Iterator[PriceChange]:
    for row in made:
        moment = max(row.effective_from_us, at_us)
        before, after = now.find(row.name, moment), then.find(row.name, moment)
        if row.withdrawn:
            status = PriceStatus.REMOVED if before != after else PriceStatus.SHADOWED
        elif after != row:
            status = PriceStatus.SHADOWED
        elif before is None:
            status = PriceStatus.ADDED
        else:
            status = PriceStatus.CHANGED if before.terms != after.terms else PriceStatus.RESTATED
        end = None if row.withdrawn else row.effective_until_us
        yield PriceChange(
            row.name, status, moment, end, before, after, price_differences(before, after)
        )


def price_differences(before: Price | None, after: Price | None) -> tuple[PriceAmount, ...]:
    """Return every amount that differs: standard tier first, then by threshold and kind.

    Kinds that take another kind's price are left out.
    """
    old, new = _amounts(before), _amounts(after)
    own = (old.keys() - _unlisted_places(before)) | (new.keys() - _unlisted_places(after))
    return tuple(
        PriceAmount(*place, _unit(place[2]), old.get(place), new.get(place))
        for place in sorted(own, key=_order)
        if old.get(place) != new.get(place)
    )


def amounts(price: Price) -> tuple[PriceAmount, ...]:
    """Return every amount that a price lists, with `old` and `new` equal."""
    return tuple(
        PriceAmount(*place, _unit(place[2]), value, value)
        for place, value in sorted(_amounts(price).items(), key=lambda item: _order(item[0]))
        if place not in _unlisted_places(price)
    )


def _amounts(price: Price | None) -> dict[Place, int]:
    if price is None:
        return {}
    terms = price.terms
    found = {(STANDARD, 0, kind): getattr(terms.rates, kind) for kind in KINDS}
    for schedule in terms.schedules:
        found |= {
            (schedule.tier, schedule.above_tokens, kind): getattr(schedule.rates, kind)
            for kind in KINDS
        }
        if schedule.picture_pusd is not None:
            found[schedule.tier, schedule.above_tokens, "picture"] = schedule.picture_pusd
        if schedule.request_pusd is not None:
            found[schedule.tier, schedule.above_tokens, "request"] = schedule.request_pusd
    for field in _beside():
        if value := getattr(terms, field):
            found[STANDARD, 0, field.rpartition("_")[0]] = value
    return found


def _beside() -> list[str]:
    """Return the fields of amounts that are not per token: `..._pusd` and `uplift_ppm`."""
    return [
        struct_field
        for struct_field in PriceTerms.__struct_fields__
        if struct_field.endswith(("_pusd", "_ppm"))
    ]


def _unlisted_places(price: Price | None) -> set[Place]:
    if price is None:
        return set()
    every = [(STANDARD, 0, price.terms.rates)]
    every += [
        (schedule.tier, schedule.above_tokens, schedule.rates) for schedule in price.terms.schedules
    ]
    return {
        (t, above, kind) for t, above, rates in every for kind in KINDS if is_unlisted(rates, kind)
    }


def _unit(kind: str) -> str:
    if kind in KINDS:
        return PER_TOKEN
    return SHARE if kind == "uplift" else PER_UNIT


def _order(place: Place) -> tuple[bool, str, int, int]:
    tier, above, kind = place
    kinds = [*KINDS, *(field.rpartition("_")[0] for field in _beside())]
    return tier != STANDARD, tier, above, kinds.index(kind)
