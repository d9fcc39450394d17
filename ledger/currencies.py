"""Money shown in another currency: dollars times a rate that somebody entered, of a day, by name.

The books are in dollars, always; a rate is for reading. One that is older than `FRESH_DAYS` is
stale and says so wherever it is used.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import msgspec

from ledger.entered import Entered, in_force

MONEY = re.compile(r"[A-Z]{3}")
FRESH_DAYS = 7


class Quoted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As entered: `per_usd` is a decimal, `day` ISO."""

    per_usd: str
    day: str
    source: str


@dataclass(frozen=True, slots=True)
class Currency:
    """`per_usd`: how much of it one dollar was on `day`, says `source`; `by` entered it."""

    code: str
    per_usd: Fraction
    day: date
    source: str
    by: str

    def age_days(self, today: date) -> int:
        return (today - self.day).days

    def stale(self, today: date) -> bool:
        return self.age_days(today) > FRESH_DAYS


def currencies(found: Sequence[Entered], at_us: int) -> list[Currency]:
    """Those that stand, by their codes. `found`: entries of currencies, the newest first."""
    made = []
    for code, one in sorted(in_force(found, at_us).items()):
        if one.says is not None:
            said = msgspec.convert(one.says, Quoted)
            day = date.fromisoformat(said.day)
            made.append(Currency(code, Fraction(said.per_usd), day, said.source, one.actor))
    return made
