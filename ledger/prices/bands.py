"""Detection of implausible prices, such as USD per 1K tokens entered as USD per million.

Each price is compared with the first of these sources that states its kind: other books, the
previous version in its own book, other hosts of the same model, and the range of all models. The
tolerated factor is 10 for other books and versions, and 30 for other hosts: of 480 models that
LiteLLM's map prices at several hosts, the widest spread is a factor of 33. A factor near 1,000 or
1,000,000 is reported with the unit that it suggests. A doubt blocks nothing: it is shown for
approval.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ledger.journals.token_kinds import PER_UNIT, TOKEN, TokenRates
from ledger.money import pusd_to_usd
from ledger.prices.book import Price, PriceBook
from ledger.prices.rates import KINDS, STANDARD, PriceTerms, is_unlisted

SAME_NAME_TIMES = 10
OTHER_HOST_TIMES = 30
NEAR = 3  # a discount or a more expensive host changes a wrong unit's factor by at most this
# Range of all models, pico-USD per token. About 5 of 3,321 in the map of October 2026 are outside.
USUAL = {"input": (4_000, 150_000_000), "output": (10_000, 600_000_000)}
_OTHER_UNITS = {
    **{kind.price: kind.unit.mistaken for kind in PER_UNIT},
    "request_pusd": ((1_000, "1K requests"),),
}
_ASKED = {**{kind.price: kind.unit.singular for kind in PER_UNIT}, "request_pusd": "request"}
_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")
_PER_MILLION = 1_000_000
Place = tuple[str, int, str]  # tier, above tokens, kind
Stated = dict[Place, int]


@dataclass(frozen=True, slots=True)
class _KnownPrices:
    """A price range of one source, and the factor beyond which a price is doubted."""

    low: int
    high: int
    who: str
    times: int


class PriceBands:
    """Plausible price range of each model at one time, used to flag outliers."""

    def __init__(self, book: PriceBook, at_us: int) -> None:
        self._book = book
        self._hosts: dict[str, list[Price]] = {}
        for price in book.prices_in_force(at_us):
            if not price.simulated:
                self._hosts.setdefault(_model(price.name), []).append(price)

    def doubt(self, price: Price) -> str | None:
        """Return a sentence that describes what is implausible about a price, or `None`."""
        if price.withdrawn or price.simulated:
            return None
        found: dict[tuple[str, str], tuple[list[str], str]] = {}
        stated = _stated_amounts(price.terms)
        for place, value in stated.items():
            if _follows(price.terms, place):
                continue
            for known in self._known_prices(price, place):
                off = _off(place, value, known)
                if off is not None:
                    how, example = off
                    found.setdefault((how, known.who), ([], example))[0].append(_place_text(place))
                break
        lines = [
            f"{', '.join(kinds)}: {how} {who} ({example})"
            for (how, who), (kinds, example) in found.items()
        ]
        return "; ".join(lines) or None

    def _known_prices(self, price: Price, place: Place) -> Iterator[_KnownPrices]:
        """Yield the ranges to compare one kind's price with, most reliable source first."""
        books = self._book.books_of(price.name)
        others = [
            max(versions, key=lambda version: version.version) for versions in books
            if versions[0].book != price.book
        ]  # fmt: skip
        yield from _range(
            [other for other in others if not other.withdrawn], place, SAME_NAME_TIMES
        )
        yield from _range(_before(books, price), place, SAME_NAME_TIMES)
        hosts = [
            named for named in self._hosts.get(_model(price.name), ()) if named.name != price.name
        ]
        yield from _range(hosts, place, OTHER_HOST_TIMES)
        if place[2] in USUAL:
            low, high = USUAL[place[2]]
            yield _KnownPrices(low, high, "what any model costs", 1)


def _range(prices: Sequence[Price], place: Place, times: int) -> Iterator[_KnownPrices]:
    """Yield the range that these prices state for a kind, if any of them charges for it."""
    if times == OTHER_HOST_TIMES:  # a host may charge the full price for what another discounts
        prices = [price for price in prices if not _follows(price.terms, place)]
    found = [(value, price) for price in prices if (value := _value(price.terms, place))]
    if not found:
        return
    low, high = min(value for value, _ in found), max(value for value, _ in found)
    price = found[0][1]
    who = f"version {price.version} of {price.book}"
    if times == OTHER_HOST_TIMES:
        who = "other hosts of the model" if len(found) > 1 else f"the model costs as {price.name}"
    elif len(found) > 1:
        who = "other books"
    yield _KnownPrices(low, high, who, times)


def _before(books: Iterable[Sequence[Price]], price: Price) -> list[Price]:
    """Return the previous version as a list of one, or an empty list.

    The list is empty if this price restores an older version's terms: then the version in between
    was the outlier, and was flagged when it was stored.
    """
    own = next((versions for versions in books if versions[0].book == price.book), ())
    older = sorted(
        (
            each_price
            for each_price in own
            if each_price.version < price.version and not each_price.withdrawn
        ),
        key=lambda each_price: each_price.version,
    )
    other = [each_price for each_price in older if each_price.terms != price.terms]
    if not other or any(each_price.terms == price.terms for each_price in older):
        return []
    return [other[-1]]


def _off(place: Place, value: int, known: _KnownPrices) -> tuple[str, str] | None:
    """Return the size and likely unit of a deviation, with figures; `None` if it is small."""
    if known.low <= value * known.times and value <= known.high * known.times:
        return None
    figures = f"{_usd(place, value)} for {_usd(place, known.low)}"
    if known.high != known.low:
        figures += f" to {_usd(place, known.high)}"
    if not value:  # some hosts of a model are free, and embeddings have no output
        return ("free, unlike", figures) if known.times == SAME_NAME_TIMES else None
    less = value < known.low
    nearest = known.low if less else known.high
    ratio = Fraction(nearest, value) if less else Fraction(value, nearest)
    off = f"{_round(ratio)} times {'less' if less else 'more'} than"
    unit = _unit(place, ratio, exact=known.times > 1)
    if unit is None:
        return off, figures
    asked = _ASKED.get(place[2], TOKEN.singular)
    wrong, right = (unit, asked) if less else (asked, unit)
    return off, f"{figures}: a price per {wrong} where one per {right} is meant?"


def _unit(place: Place, ratio: Fraction, *, exact: bool) -> str | None:
    """Return the unit that a factor suggests, or `None`.

    With `exact`, the factor must be near the unit's. Otherwise the next larger unit's factor
    counts.
    """
    for factor, unit in _OTHER_UNITS.get(place[2], TOKEN.mistaken):
        if ratio <= (factor * NEAR if exact else factor) and (not exact or ratio * NEAR >= factor):
            return unit
    return None


def _stated_amounts(terms: PriceTerms) -> Stated:
    """Return every amount that a price states, except its surcharge."""
    found = {(STANDARD, 0, kind): getattr(terms.rates, kind) for kind in KINDS}
    for schedule in terms.schedules:
        found |= {
            (schedule.tier, schedule.above_tokens, kind): getattr(schedule.rates, kind)
            for kind in KINDS
        }
    for field in _OTHER_UNITS:
        if value := getattr(terms, field):
            found[STANDARD, 0, field] = value
    return found


def _value(terms: PriceTerms, place: Place) -> int:
    """Return the price at a place, or the standard rate if its tier or step is not listed."""
    kind = place[2]
    return int(getattr(_rates(terms, place) if kind in KINDS else terms, kind))


def _follows(terms: PriceTerms, place: Place) -> bool:
    """Return whether a kind takes another kind's rate, or is free.

    A free input or output does not count.
    """
    kind = place[2]
    if kind not in KINDS:
        return False
    rates = _rates(terms, place)
    return is_unlisted(rates, kind) or (kind not in USUAL and not getattr(rates, kind))


def _rates(terms: PriceTerms, place: Place) -> TokenRates:
    for schedule in terms.schedules:
        if (schedule.tier, schedule.above_tokens) == place[:2]:
            return schedule.rates
    return terms.rates


def _place_text(place: Place) -> str:
    tier, above, kind = place
    words = [*([] if tier == STANDARD else [tier]), kind.removesuffix("_pusd")]
    return " ".join([*words, *([f">{above}"] if above else [])])


def _usd(place: Place, pusd: int) -> str:
    """Return USD per million tokens, or per unit for prices of other units, as text."""
    usd = pusd_to_usd(pusd * _PER_MILLION if place[2] in KINDS else pusd)
    text = f"{usd:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _round(ratio: Fraction) -> str:
    """Return the ratio rounded to two significant digits, as text."""
    scale = 10 ** max(0, len(str(int(ratio))) - 2)
    return f"{int(ratio / scale + Fraction(1, 2)) * scale:,}"


def _model(name: str) -> str:
    """Return a model's name without provider, region and snapshot, in lower case."""
    return _SNAPSHOT.sub("", name.partition("#")[0].rpartition("/")[2].lower())
