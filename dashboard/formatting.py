"""Numbers and reasons as text for people outside the project.

Money has three significant digits or cents, tokens a unit, and every reason code of the router a
sentence. Nothing is computed here.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple, Self

import msgspec

from dashboard import display
from ledger import reasons
from ledger.economics.cost import Exact
from ledger.money import format_usd
from ledger.overrides import API, DISABLED, EVERY, OWN, Override
from ledger.queries.reads import AttemptComparison

REASONS = {word: text.sentence for word, text in reasons.REASONS.items()} | {
    # codes of the ledger only, not of a decision
    "rate": "too many requests at once",
    "over_rate": "over the limit of requests or tokens a minute",
    "fallback": "another target failed first",
}
STAGE = 8  # index in a recorded decision, as written by `router.packed`
_MARKS = re.compile(r"[\\`*_{}\[\]()<>#+.!|~:$-]")  # characters with a meaning in markdown
_THOUSANDS: tuple[tuple[int, str], ...] = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))


class Hardware(NamedTuple):
    single: str
    many: str


GPU, MACHINE = Hardware("GPU", "GPUs"), Hardware("machine", "machines")


def sentence(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def hardware(types: Iterable[str]) -> Hardware:
    """Return the name of the hardware: machines if all of it is CPUs, else GPUs."""
    kinds = {kind.upper() for kind in types}
    return MACHINE if kinds == {"CPU"} else GPU


def hardware_count(kind: str, number: Exact) -> str:
    """Return `1 GPU`, `4 GPUs`, `50 % of a machine`; `kind` is a contract's GPU type."""
    word = hardware([kind])
    if 0 < number < 1:
        return f"{percent(number)} of a {word.single}"
    return f"{float(number):g} {word.single if number == 1 else word.many}"


def reason(code: str | None) -> str:
    if code is None:
        return "not spilled"
    return REASONS.get(code, code.replace("_", " "))


class Money(str):
    """A displayed amount; `exact` is the ledger's amount in dollars, to the last digit."""

    exact: str

    __slots__ = ("exact",)

    def __new__(cls, text: str, exact: str) -> Self:
        made = super().__new__(cls, text)
        made.exact = exact
        return made

    def __add__(self, more: str) -> Self:
        return type(self)(str(self) + more, self.exact)


def money(pusd: Exact, *, sign: bool = False) -> Money:
    """Return `$1,235`, `$12.35`, `$0.0123`; minus before the dollar, plus on request.

    Other display currencies give `EUR 1,108`.
    """
    units, _, fraction = format_usd(round(pusd), 12).partition(".")
    exact = f"{units}.{fraction.rstrip('0').ljust(2, '0')}"
    return Money(display.now().text(pusd, sign=sign), exact)


def tokens(count: Exact) -> str:
    """Return a count with three significant digits: `1.23M`, `45.6k`, `812`."""
    for scale, unit in _THOUSANDS:
        if abs(Fraction(count)) >= scale:
            value = float(Fraction(count) / scale)
            digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
            return f"{value:.{digits}f}{unit}"
    return f"{float(count):.0f}"


def quote(text: str) -> str:
    """Escape a name for markdown, so that it cannot become a link, picture or formula.

    Names come from URLs and files that other people may have made.
    """
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def code(text: str) -> str:
    """Return the text in a code span that no character of the text can end."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"


def count(number: int) -> str:
    return f"{number:,}"


def percent(share: Exact | float | None, *, digits: int = 0) -> str:
    """Return a share in percent; one that would round to zero is `< 1 %`."""
    if share is None:
        return "n/a"
    shown = f"{100 * float(share):.{digits}f}"
    if share > 0 and not float(shown):
        return f"< {10**-digits:g} %"
    return f"{shown} %"


def factor_text(ratio: Exact | float) -> str:
    value = float(ratio)
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def moment(at_us: int, form: str = "%d %b %H:%M") -> str:
    """Return a time in the displayed time zone, with its name."""
    at = local(at_us)
    return f"{at.strftime(form)} {at.tzname()}"


def instant(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / 1e6, tz=UTC)


def local(at_us: int) -> datetime:
    """Return a time in the displayed time zone."""
    return display.now().local(instant(at_us))


def zoned(what: str) -> str:
    """Return a label with the time zone, as `from (UTC)`."""
    return f"{what} ({display.now().zone})"


def override_text(override: Override) -> str:
    """Return an override as a sentence with author, end and reason."""
    kind, _, name = override.subject.partition(":")
    whose = "All models go" if name == EVERY else f"{name} goes"
    what = {
        DISABLED: f"{name} gets no new requests",
        OWN: f"{whose} to own engines alone",
        API: f"{whose} to APIs alone",
    }.get(override.says, f"{kind} {name}: {override.says}")
    end = "" if override.until_us is None else f" until {moment(override.until_us)}"
    why = f" ({override.note})" if override.note else ""
    return f"{what}{end}, says {override.actor}{why}."


def ago(then_us: int, now_us: int) -> str:
    return f"{length(max(0, now_us - then_us))} ago"


def length(span_us: int) -> str:
    """Return a duration in whole units, at least two: `45 s`, `90 s`, `2 h`."""
    seconds = span_us // 10**6
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def comparison(found: AttemptComparison) -> str:
    """Return the cost at a comparator, and the tokens assumed cached there."""
    if not found.cached_tokens:
        return money(found.cost_pusd)
    return f"{money(found.cost_pusd)}, {count(found.cached_tokens)} tokens of the prompt cached"


def stage_rows(blob: bytes | None) -> list[tuple[str, str, None]]:
    """Return a row with the stage that decided, if the model has several."""
    packed = msgspec.msgpack.decode(blob) if blob else ()
    if len(packed) <= STAGE:
        return []
    number, count, after, _ = packed[STAGE]
    waited = "" if number == 1 else f", after {after.replace('_', ' ').replace('+', ' or ')}"
    return [("Stage of its model's targets", f"{number} of {count}{waited}", None)]
