"""Display of money in another currency, by a dated rate that a named person entered.

The ledger is always in dollars; a rate is used only for display. A rate older than `FRESH_DAYS` is
stale and is marked as stale wherever it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import msgspec

from ledger.manual_entries import ManualEntry

# Active codes of ISO 4217, without the US dollar, in which the ledger is kept.
_LISTED = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS "
    "GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW "
    "KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR "
    "MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR "
    "SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX "
    "UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
CODES = frozenset(_LISTED.split())
FRESH_DAYS = 7


class ExchangeRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rate as entered: `per_usd` is a decimal text, `day` an ISO date."""

    per_usd: str
    day: str
    source: str


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency with its rate: units for one dollar on `day`, by `source`, entered by `by`."""

    code: str
    per_usd: Fraction
    day: date
    source: str
    by: str

    def age_days(self, today: date) -> int:
        return (today - self.day).days

    def stale(self, today: date) -> bool:
        return self.age_days(today) > FRESH_DAYS


def unknown(code: str) -> str | None:
    """Return what is wrong with a typed currency code and the fix, or `None` for a valid code."""
    if code == "USD":
        return "the books are in USD: another currency is quoted in it"
    if code not in CODES:
        return f"`{code}` is not a currency code of ISO 4217: write EUR, GBP, JPY, ..."
    return None


def current_quotes(found: Sequence[ManualEntry], at_us: int) -> dict[str, ManualEntry]:
    """Return the rate of the newest day for each currency code; of one day, the last entered.

    `found`: entries of currencies, newest first. An entry that withdraws a rate ends all earlier
    entries of its code.
    """
    newest: dict[str, tuple[str, ManualEntry]] = {}
    taken_back: set[str] = set()
    for entry in found:
        if entry.from_us > at_us or entry.name in taken_back:
            continue
        if entry.says is None:
            taken_back.add(entry.name)
            continue
        day = msgspec.convert(entry.says, ExchangeRate).day  # ISO: as text they are in their order
        if entry.name not in newest or day > newest[entry.name][0]:
            newest[entry.name] = day, entry
    return {code: entry for code, (_, entry) in sorted(newest.items())}


def currencies(found: Sequence[ManualEntry], at_us: int) -> list[Currency]:
    """Return the currencies that have a rate at `at_us`, in the order of `current_quotes`.

    `found`: entries of currencies, newest first.
    """
    made = []
    for code, entry in current_quotes(found, at_us).items():
        said = msgspec.convert(entry.says, ExchangeRate)
        day = date.fromisoformat(said.day)
        made.append(Currency(code, Fraction(said.per_usd), day, said.source, entry.actor))
    return made
