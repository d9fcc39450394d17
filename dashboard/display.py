"""Display settings of a viewer: time zone of times and currency of amounts.

The ledger uses UTC and dollars. A page is drawn under one `DisplaySettings`, chosen in the sidebar;
texts, charts and tables look up the current one, as numbers use a decimal context. Exports and
reports use those of the ledger (`BOOKS`).
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
    """Settings: `zone` is an IANA name; `money` converts dollars, `None` keeps them."""

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
        """Return the seconds at which a UTC axis shows this zone's local time."""
        shift = self.local(at).utcoffset()
        return at.timestamp() + (0.0 if shift is None else shift.total_seconds())

    def text(self, pusd: Exact, *, sign: bool = False) -> str:
        """Return an amount like `ledger.money.usd_text`, with the currency's code."""
        if self.money is None:
            return usd_text(pusd, sign=sign)
        amount = round(Fraction(pusd) * self.per_usd)
        return usd_text(amount, sign=sign).replace("$", f"{self.code}\u00a0", 1)

    def unit_of(self, unit: str) -> str:
        """Return a unit as `dollars a month` in the displayed currency."""
        return unit if self.money is None else unit.replace("dollars", self.code)


BOOKS = DisplaySettings()
_NOW: ContextVar[DisplaySettings] = ContextVar("reading", default=BOOKS)


def now() -> DisplaySettings:
    """Return the current display settings; outside pages those of the ledger."""
    return _NOW.get()


@contextmanager
def read_as(reading: DisplaySettings) -> Iterator[None]:
    before = _NOW.set(reading)
    try:
        yield
    finally:
        _NOW.reset(before)


def known_zone(name: str | None) -> str:
    """Return the name if this host knows the time zone, otherwise UTC."""
    try:
        return UTC_NAME if not name else ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC_NAME


def _zone(name: str) -> tzinfo:
    return UTC if name == UTC_NAME else ZoneInfo(name)
