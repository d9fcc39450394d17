"""The chain of retirements is broken by every edit."""

from dataclasses import fields, replace

from ledger.seals.retirements import RetiredTotals, RetirementPart
from ledger.seals.seal import GENESIS

SUMS = RetiredTotals(9, 8, 7, 6, 5, 4, 10**30)
PART = RetirementPart(1, 0, True, 3, SUMS, b"g" * 32, 2, b"l" * 32, b"b" * 32)


def test_every_field_is_chained() -> None:
    chain = PART.chain(GENESIS, b"link")
    assert chain == PART.chain(GENESIS, b"link")
    changed = [PART.chain(b"x" * 32, b"link"), PART.chain(GENESIS, b"other")]
    for field in fields(RetirementPart):
        if field.name != "sums":
            value = getattr(PART, field.name)
            other = value + b"x" if isinstance(value, bytes) else value + 1
            changed.append(replace(PART, **{field.name: other}).chain(GENESIS, b"link"))
    for field in fields(RetiredTotals):
        more = replace(SUMS, **{field.name: getattr(SUMS, field.name) + 1})
        changed.append(replace(PART, sums=more).chain(GENESIS, b"link"))
    assert len({chain, *changed}) == 1 + len(changed)


def test_a_part_that_an_earlier_release_retired_keeps_its_chain_value() -> None:
    """It has no bookings, and its chain value has none."""
    earlier = replace(PART, bookings=None).chain(GENESIS, b"link")
    value = "1d2977273976d04b8e5c104d070fbf7028b8260f037a60be7e371016413ca236"
    assert earlier.hex() == value
