"""Doubts about prices for a person to check: stale, expired, without source, implausible.

`flags` examines the names that the caller gives: those of a configuration, or all. This module does
no I/O; the time is an argument.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum

from ledger.prices.bands import PriceBands
from ledger.prices.book import Price, PriceBook, is_open, last_at
from ledger.prices.unread_terms import FeeTrigger, doubtful_terms, trigger_of

STALE_AFTER_DAYS = 90
ENDS_WITHIN_DAYS = 30
_US_PER_S = 1_000_000
_CHARGED_FOR = {
    FeeTrigger.HOSTED_TOOLS: "hosted tools",
    FeeTrigger.MEDIA: "pictures, sound, video",
    FeeTrigger.SOUND: "sound",
    FeeTrigger.LIMIT: "for a limit on money",
}
_NO_DATES: Mapping[str, str] = {}


class PriceDoubt(StrEnum):
    """The kind of a doubt about a price.

    `STALE`: the source was read long ago, or its date is unknown. `PENDING`: the bundled map states
    another price, which waits for approval. `PARTLY_KNOWN`: the source states charges that our
    terms do not cover. `IMPLAUSIBLE`: too far from other known prices.
    """

    STALE = "stale"
    NO_SOURCE = "no_source"
    RETIRED = "retired"
    EXPIRED = "expired"
    ENDS_SOON = "ends_soon"
    MISSING = "missing"
    PENDING = "pending"
    IMPLAUSIBLE = "implausible"
    PARTLY_KNOWN = "partly_known"


@dataclass(frozen=True, slots=True)
class PriceFlag:
    """A doubt about one name's price. `version` is `None` if no price is in force."""

    name: str
    version: int | None
    flag: PriceDoubt
    detail: str


def flags(
    book: PriceBook,
    names: Iterable[str],
    at_us: int,
    *,
    read_on: Mapping[str, str] = _NO_DATES,
    stale_after_days: int = STALE_AFTER_DAYS,
) -> list[PriceFlag]:
    """Return doubts about the prices of these names.

    `read_on` is the ISO day on which each book's source was last read.
    """
    today = _day(at_us)
    bands = PriceBands(book, at_us)
    found: list[PriceFlag] = []
    for name in names:
        price = book.find(name, at_us)
        if price is None:
            found.append(
                PriceFlag(name, None, PriceDoubt.MISSING, "no price is in force for this name")
            )
        else:
            doubts = _doubts(price, read_on.get(price.book), today, stale_after_days)
            found += [PriceFlag(name, price.version, flag, words) for flag, words in doubts]
            if unsaid := _partly_known(book.unread_terms(price, at_us)):
                found.append(PriceFlag(name, price.version, PriceDoubt.PARTLY_KNOWN, unsaid))
            if words := bands.doubt(price):
                found.append(PriceFlag(name, price.version, PriceDoubt.IMPLAUSIBLE, words))
        found += _ended_flags(book, name, price, at_us)
    return found


def _partly_known(names: Iterable[str]) -> str:
    """Return a sentence that lists uncovered charges and the requests that incur them."""
    doubtful = doubtful_terms(list(names))
    if not doubtful:
        return ""
    terms = ", ".join(
        name if trigger_of(name) is FeeTrigger.ANY else f"{name} ({_CHARGED_FOR[trigger_of(name)]})"
        for name in doubtful
    )
    return f"not in its terms: {terms}; state it in a price file, or `complete: true`"


def _doubts(
    price: Price, read_on: str | None, today: date, stale_after_days: int
) -> Iterator[tuple[PriceDoubt, str]]:
    if price.source is None:
        yield PriceDoubt.NO_SOURCE, f"{price.book} gives no source"
    read = max(price.source_date or "", read_on or "")
    if not read:
        yield PriceDoubt.STALE, "nobody wrote when the source was read"
    elif (today - date.fromisoformat(read)).days > stale_after_days:
        yield PriceDoubt.STALE, f"the source was read on {read}"
    if price.retired_on is not None and date.fromisoformat(price.retired_on) <= today:
        yield PriceDoubt.RETIRED, f"the provider retires it on {price.retired_on}"
    if price.effective_until_us is not None:
        last = _last_day(price.effective_until_us)
        if (last - today).days <= ENDS_WITHIN_DAYS:
            yield PriceDoubt.ENDS_SOON, f"the price of {price.book} ends after {last}"


def _ended_flags(book: PriceBook, name: str, now: Price | None, at_us: int) -> Iterator[PriceFlag]:
    """Yield flags for ended prices that no price of the same or a higher rank replaces."""
    for versions in book.books_of(name if now is None else now.name):
        last = last_at(versions, at_us)
        if last is None or last.withdrawn or is_open(last, at_us) or last.rank == 0:
            continue
        if now is not None and now.rank >= last.rank:
            continue
        until_us = last.effective_until_us
        assert until_us is not None  # or it would be open
        instead = "and nothing prices it since" if now is None else f"since then {now.book} counts"
        words = f"the price of {last.book} ended after {_last_day(until_us)}, {instead}"
        yield PriceFlag(name, last.version, PriceDoubt.EXPIRED, words)


def _last_day(until_us: int) -> date:
    return _day(until_us - 1)


def _day(at_us: int) -> date:
    return datetime.fromtimestamp(at_us // _US_PER_S, tz=UTC).date()
