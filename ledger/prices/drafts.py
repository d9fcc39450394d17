"""Price drafts from several sources, and what changed since the last import.

A draft is a price without a version. Sources are LiteLLM's packaged map and price files. `diff`
compares the drafts with the stored versions for every time from the import on, and returns the rows
to store. Only changes make a version; stored versions and past prices are never edited. A name that
a price file drops is ended by a `withdrawn` version. A model that the bundled map drops keeps its
price, because it may still be served.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ledger.prices.book import MARKET_RANK, Price, PriceError, PriceTerms, check, is_open

BUNDLED_RANK = MARKET_RANK
APPROVED_RANK = 1_000_000  # negotiated prices that a person imported override configured files
Key = tuple[str, str]  # book, name
T = TypeVar("T", Price, "PriceDraft")


class PriceDraft(msgspec.Struct, frozen=True):
    """One price as a source states it.

    `effective_from_us` is `None` for a price that applies from its first import on.
    """

    name: str
    book: str
    terms: PriceTerms
    rank: int = BUNDLED_RANK
    source: str | None = None
    source_date: str | None = None
    retired_on: str | None = None
    simulated: bool = False
    effective_from_us: int | None = None
    effective_until_us: int | None = None


@dataclass(frozen=True, slots=True)
class DraftChange:
    """One price row to store."""

    draft: PriceDraft
    effective_from_us: int
    withdrawn: bool = False

    def price(self, version: int) -> Price:
        draft = self.draft
        return Price(
            version=version,
            name=draft.name,
            book=draft.book,
            effective_from_us=self.effective_from_us,
            terms=draft.terms,
            effective_until_us=draft.effective_until_us,
            rank=draft.rank,
            source=draft.source,
            source_date=draft.source_date,
            retired_on=draft.retired_on,
            simulated=draft.simulated,
            withdrawn=self.withdrawn,
        )


@dataclass(frozen=True, slots=True)
class DraftChanges:
    """The changes of an import: `rows` are stored in this order, each as the next version."""

    rows: tuple[DraftChange, ...]
    unchanged: int
    gone: tuple[Price, ...]  # prices in force that the bundled map has dropped
    waiting: int = 0  # names whose other price in the map waits for approval

    def prices(self, first_version: int) -> list[Price]:
        return [row.price(first_version + place) for place, row in enumerate(self.rows)]


def diff(
    current: Iterable[Price],
    drafts: Sequence[PriceDraft],
    *,
    at_us: int,
    priced: Container[str] = (),
) -> DraftChanges:
    """Return the rows that make the stored versions equal to the drafts from `at_us` on.

    A name's first price also covers the past, unless the name is in `priced`, the names that other
    books price. Raises `PriceError` with every draft that fails `check` or is stated twice.
    """
    _refuse_faults(drafts)
    stored: dict[Key, list[Price]] = {}
    for price in sorted(current, key=_order_of):
        stored.setdefault((price.book, price.name), []).append(price)
    stated: dict[Key, list[PriceDraft]] = {}
    for draft in sorted(drafts, key=lambda each_draft: each_draft.effective_from_us or 0):
        stated.setdefault((draft.book, draft.name), []).append(draft)
    rows: list[DraftChange] = []
    gone: list[Price] = []
    for key in sorted({*stored, *stated}):
        versions, wanted = stored.get(key, []), stated.get(key, [])
        if not wanted and versions[-1].rank == BUNDLED_RANK:
            gone.append(versions[-1])
        else:
            start_us = at_us if versions or key[1] in priced else 0
            rows += _missing_changes(versions, wanted, start_us)
    changed = {(row.draft.book, row.draft.name) for row in rows}
    return DraftChanges(tuple(rows), len({*stated} - changed), tuple(gone))


def _missing_changes(
    versions: list[Price], drafts: list[PriceDraft], start: int
) -> list[DraftChange]:
    """Return the rows of one name of one book where stored and stated prices differ.

    Only times from `start` on are compared.
    """
    since = {draft.effective_from_us or 0 for draft in drafts}
    since |= {price.effective_from_us for price in versions}
    rows: list[DraftChange] = []
    for moment in sorted({start, *(number for number in since if number > start)}):
        standing = _last([version for version in versions if version.effective_from_us <= moment])
        wanted = _last(
            [each_draft for each_draft in drafts if (each_draft.effective_from_us or 0) <= moment]
        )
        if standing is not None and not is_open(standing, moment):
            standing = None
        if wanted is not None and (wanted.effective_until_us or moment + 1) <= moment:
            wanted = None  # the draft has ended: its row would end before it begins
        if wanted is not None and (standing is None or not _same(standing, wanted)):
            row = DraftChange(wanted, moment)
        elif wanted is None and standing is not None:
            row = DraftChange(_draft_of(standing), moment, withdrawn=True)
        else:
            continue
        rows.append(row)
        following = max((version.version for version in versions), default=0) + 1
        versions = sorted([*versions, row.price(following)], key=_order_of)
    return rows


def _same(price: Price, draft: PriceDraft) -> bool:
    """Return whether a stored price equals a draft.

    The date on which the source was read is ignored: it is kept per book (`read_days`).
    """
    return (
        price.terms == draft.terms
        and price.effective_until_us == draft.effective_until_us
        and (price.rank, price.simulated) == (draft.rank, draft.simulated)
        and (price.source, price.retired_on) == (draft.source, draft.retired_on)
    )


def states_same_amounts(price: Price, draft: PriceDraft) -> bool:
    """Return whether price and draft differ at most in the names of unread charges."""
    return msgspec.structs.replace(price.terms, unread=()) == msgspec.structs.replace(
        draft.terms, unread=()
    )


def _draft_of(price: Price) -> PriceDraft:
    return PriceDraft(
        name=price.name,
        book=price.book,
        terms=price.terms,
        rank=price.rank,
        source=price.source,
        source_date=price.source_date,
        retired_on=price.retired_on,
        simulated=price.simulated,
    )


def _order_of(price: Price) -> tuple[int, int]:
    return price.effective_from_us, price.version


def _last(found: list[T]) -> T | None:
    return found[-1] if found else None


def draft_faults(draft: PriceDraft) -> list[str]:
    """Return the faults of one draft as sentences, empty for a price that can be charged."""
    return check(DraftChange(draft, draft.effective_from_us or 0).price(0))


def _refuse_faults(drafts: Sequence[PriceDraft]) -> None:
    faults: list[str] = []
    seen: set[tuple[str, str, int | None]] = set()
    for draft in drafts:
        faults += [f"{draft.book}: {draft.name}: {fault}" for fault in draft_faults(draft)]
        key = (draft.book, draft.name, draft.effective_from_us)
        if key in seen:
            faults.append(f"{draft.book}: {draft.name}: stated twice")
        seen.add(key)
    if faults:
        raise PriceError("; ".join(faults))
