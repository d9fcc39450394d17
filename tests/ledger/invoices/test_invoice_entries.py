"""How an invoice was posted follows from its own entries, or it makes no difference."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.invoice_entries import invoice_entry, invoice_of, is_added

DAYS = range(4)


def test_an_entry_names_its_invoice_and_others_name_none():
    entry = invoice_entry(17, date(2026, 5, 6))
    assert (entry, invoice_of(entry)) == ("invoice:17:2026-05-06", 17)
    assert invoice_of("r17.1") is None
    assert invoice_of("invoice:17") is None


@pytest.mark.parametrize(
    ("case", "lines", "posted", "added"),
    [
        ("whole, all of it booked", {1: 100}, {}, False),
        ("whole, more than was booked", {1: 140}, {1: 40}, False),
        ("whole, a zero line where something was booked", {1: 0}, {1: -100}, False),
        ("whole, a booked day without a line", {1: 100}, {1: 100, 2: -50}, False),
        ("whole, a credit for a booked day", {1: -20}, {1: -120}, False),
        ("replaces, another figure", {1: 90}, {1: -10}, False),
        ("replaces, the same figure", {1: 90, 2: 0}, {}, False),
        ("added", {1: 40}, {1: 40}, True),
        ("added, with zero lines", {0: 0, 1: 40, 2: 0}, {1: 40}, True),
        ("added, a credit", {1: -40}, {1: -40}, True),
        ("added, nothing", {1: 0}, {}, True),
        ("either, nothing was booked", {1: 40, 2: -3}, {1: 40, 2: -3}, True),
    ],
)  # fmt: skip
def test_entries_equal_lines_only_where_an_invoice_was_added(case, lines, posted, added):
    assert is_added(lines, posted) is added, case


POSTINGS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(DAYS), st.integers(-60, 90), min_size=1), st.booleans()
    ),
    min_size=1,
    max_size=5,
)


@given(
    booked=st.dictionaries(st.sampled_from(DAYS), st.integers(0, 60)),
    late=st.dictionaries(st.sampled_from(DAYS), st.integers(0, 60)),
    postings=POSTINGS,
)
def test_what_was_posted_is_read_as_it_was_or_both_readings_owe_the_same(booked, late, postings):
    """Property: also of runs of parts, corrections and credits, with bookings that came between.

    Where both readings fit, the books had nothing on any of its days. The one that adds gives
    claims no more than the other: bills of those days have no more than nothing before it.
    """
    owed, billed, read = dict(booked), {}, {}
    for place, (lines, adds) in enumerate(postings):
        days = range(min(lines), max(lines) + 1)
        before = {day: owed.get(day, 0) for day in days}
        posted = {day: lines.get(day, 0) - (0 if adds else before[day]) for day in days}
        added = is_added(lines, {day: pusd for day, pusd in posted.items() if pusd})
        if added != adds:
            assert not any(before.values())
        for day in days:
            owed[day] = before[day] + posted[day]
            billed[day] = (billed.get(day, 0) if adds else 0) + lines.get(day, 0)
            read[day] = (read.get(day, 0) if added else 0) + lines.get(day, 0)
            assert added == adds or owed[day] == before[day] * added + lines.get(day, 0)
        assert all(read[day] <= billed[day] for day in billed)
        if place == 0:
            for day, pusd in late.items():
                owed[day] = owed.get(day, 0) + pusd
