"""The viewer's display choices: the zone of times and the currency of amounts.

The books have UTC and dollars. A page is drawn under one `DisplaySettings`, chosen in the sidebar;
words,
charts and tables ask for the one that they are drawn under, as numbers ask a decimal context.
Exports and reports are made of the books as they are (`BOOKS`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ledger.currencies import Currency
from ledger.economics.cost import Exact
from ledger.money import usd_text

USD, UTC_NAME = "USD", "UTC"


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """`zone`: IANA name. `money`: what dollars are multiplied by; None: they stay dollars."""

    zone: str = UTC_NAME
    money: Currency | None = None

    @property
    def per_usd(self) -> Fraction:
        return Fraction(1) if self.money is None else self.money.per_usd

    @property
    def code(self) -> str:
        return USD if self.money is None else self.money.code

    def local(self, at: datetime) -> datetime:
        return at.astimezone(_zone(self.zone))

    def drawn_s(self, at: datetime) -> float:
        """Seconds at which a UTC axis shows this zone's wall time of an instant."""
        shift = self.local(at).utcoffset()
        return at.timestamp() + (0.0 if shift is None else shift.total_seconds())

    def text(self, pusd: Exact, *, sign: bool = False) -> str:
        """Return an amount as `ledger.money.usd_text` does, with the currency's code."""
        if self.money is None:
            return usd_text(pusd, sign=sign)
        amount = round(Fraction(pusd) * self.per_usd)
        return usd_text(amount, sign=sign).replace("$", f"{self.code}\u00a0", 1)

    def unit_of(self, unit: str) -> str:
        """`dollars a month` in the money that is read."""
        return unit if self.money is None else unit.replace("dollars", self.code)


BOOKS = DisplaySettings()
_NOW: ContextVar[DisplaySettings] = ContextVar("reading", default=BOOKS)


def now() -> DisplaySettings:
    """The one that is drawn under; outside pages that of the books."""
    return _NOW.get()


@contextmanager
def read_as(reading: DisplaySettings) -> Iterator[None]:
    before = _NOW.set(reading)
    try:
        yield
    finally:
        _NOW.reset(before)


def known_zone(name: str | None) -> str:
    """The name if this host knows such a zone, else that of the books."""
    try:
        return UTC_NAME if not name else ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC_NAME


def _zone(name: str) -> tzinfo:
    return UTC if name == UTC_NAME else ZoneInfo(name)
