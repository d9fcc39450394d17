"""What the price book is made from: drafts out of several sources, and what changed since.

A draft is a price without a version. Sources (LiteLLM's packaged map, price files) give drafts;
`diff` compares them with the stored versions and names the rows to store: only what changed makes
a version, nothing stored is edited, and a row that a price file drops is ended by a `withdrawn`
version. A model that the bundled map drops stays priced: it may still be served.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ledger.prices import Price, PriceError, Terms, check

BUNDLED_RANK = 0


class PriceDraft(msgspec.Struct, frozen=True):
    """One price as a source states it. `effective_from_us` None: from when it is first seen."""

    name: str
    book: str
    terms: Terms
    rank: int = BUNDLED_RANK
    source: str | None = None
    source_date: str | None = None
    retired_on: str | None = None
    simulated: bool = False
    effective_from_us: int | None = None
    effective_until_us: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One row to store. `before` is the version that it follows in its book, if any."""

    draft: PriceDraft
    effective_from_us: int
    before: Price | None = None
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
class Changes:
    """What an import does: `rows` are stored in this order, each as the next version."""

    rows: tuple[Change, ...]
    unchanged: int
    gone: tuple[Price, ...]  # bundled prices that the map has dropped: kept, for a person to see

    def prices(self, first_version: int) -> list[Price]:
        return [row.price(first_version + place) for place, row in enumerate(self.rows)]


def diff(current: Iterable[Price], drafts: Sequence[PriceDraft], *, at_us: int) -> Changes:
    """The rows that bring the stored versions to what the drafts say, from `at_us` on.

    Raises `PriceError` with every draft that fails its dry run or is stated twice.
    """
    _refuse_faults(drafts)
    stored: dict[tuple[str, str], list[Price]] = {}
    for price in sorted(current, key=lambda one: (one.effective_from_us, one.version)):
        stored.setdefault((price.book, price.name), []).append(price)
    rows: list[Change] = []
    for draft in drafts:
        row = _change(draft, stored.get((draft.book, draft.name), []), at_us)
        if row is not None:
            rows.append(row)
    unchanged = len(drafts) - len(rows)
    stated = {(draft.book, draft.name) for draft in drafts}
    dropped = [versions[-1] for key, versions in stored.items() if key not in stated]
    rows += [
        Change(_draft_of(price), max(at_us, price.effective_from_us), price, withdrawn=True)
        for price in dropped
        if price.rank > BUNDLED_RANK and not price.withdrawn
    ]
    return Changes(
        tuple(rows), unchanged, tuple(one for one in dropped if one.rank == BUNDLED_RANK)
    )


def _change(draft: PriceDraft, versions: list[Price], at_us: int) -> Change | None:
    since_us = draft.effective_from_us
    if since_us is not None:
        versions = [one for one in versions if one.effective_from_us == since_us]
    before = versions[-1] if versions else None
    if before is not None and not before.withdrawn and _same(before, draft):
        return None
    if since_us is None:
        # A name's first price also covers the past: nothing earlier is known of it.
        since_us = 0 if before is None else max(at_us, before.effective_from_us)
    return Change(draft, since_us, before)


def _same(price: Price, draft: PriceDraft) -> bool:
    """The date on which a source was read is no change; books carry it (`PriceBook.read_on`)."""
    return (
        price.terms == draft.terms
        and price.effective_until_us == draft.effective_until_us
        and (price.rank, price.simulated) == (draft.rank, draft.simulated)
        and (price.source, price.retired_on) == (draft.source, draft.retired_on)
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


def _refuse_faults(drafts: Sequence[PriceDraft]) -> None:
    faults: list[str] = []
    seen: set[tuple[str, str, int | None]] = set()
    for draft in drafts:
        trial = Change(draft, draft.effective_from_us or 0).price(0)
        faults += [f"{draft.book}: {draft.name}: {fault}" for fault in check(trial)]
        key = (draft.book, draft.name, draft.effective_from_us)
        if key in seen:
            faults.append(f"{draft.book}: {draft.name}: stated twice")
        seen.add(key)
    if faults:
        raise PriceError("; ".join(faults))
