"""A posted invoice says which part of its days' claims is owed; only that goes on counting."""

from datetime import date

import pytest
from sqlalchemy import select

from ledger.budgets.open_claims import BILLED, WAIVED, Resolution, resolve_claims
from ledger.invoices.billed_claims import reconcile_claims
from ledger.invoices.books import PostingMode, post_invoice, store
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.orm import tables as orm
from ledger.spans import DAY_US
from ledger.verify.budgets import windows_count_claims

DAY = date(2026, 5, 6)
NUMBER = (DAY - date(1970, 1, 1)).days
NOON = NUMBER * DAY_US + DAY_US // 2
LATER = NOON + 30 * DAY_US


def claims_in(engine):
    with engine.connect() as connection:
        table = orm.ClaimRow
        rows = connection.execute(select(table.attempt_id, table.resolution, table.counted_pusd))
        assert [*windows_count_claims(connection)] == []
        return {row[0]: (row[1], row[2]) for row in rows}


@pytest.fixture
def disputed(engine, opened, settled, write):
    """Two claims of 300 and 100 beyond 50 each, of which 200 and 100 are plausible."""
    for number, surplus, plausible in ((1, 300, 200), (2, 100, 150)):
        end = settled(
            number, settled_us=NOON, cost_pusd=50, claimed_pusd=50 + surplus,
            plausible_pusd=plausible,
        )  # fmt: skip
        write(engine, opened(number, opened_us=NOON - 1), end)
    with engine.connect() as connection:
        provider = connection.execute(select(orm.AttemptRow.provider)).scalars().first()
    return engine, provider


def bill(disputed, amount, manner=PostingMode.WHOLE):
    engine, provider = disputed
    lines = (InvoiceLine(DAY, "m", amount),)
    file = InvoiceFile("csv", lines, 12, f"digest {amount}")
    number = store(engine, file, party=f"provider:{provider}", name="x.csv", by="ann", at_us=LATER)
    post_invoice(engine, number, by="ann", at_us=LATER, manner=manner)
    return claims_in(engine)


@pytest.mark.parametrize(
    ("amount", "first", "second"),
    [
        (100, 0, 0),  # what was booked and no more
        (500, 200, 100),  # all that is claimed
        (900, 200, 100),
        (300, 150, 50),  # half of it, in proportion
    ],
)
def test_a_bill_says_what_of_the_claims_is_owed(disputed, amount, first, second):
    assert claims_in(disputed[0]) == {"r1.1": (None, 200), "r2.1": (None, 100)}
    assert bill(disputed, amount) == {"r1.1": (BILLED, first), "r2.1": (BILLED, second)}


def test_a_day_billed_for_less_than_was_booked_says_nothing_of_claims(disputed):
    """A part of the bill, or bookings at a bound beside the claims: they go on narrowing."""
    assert bill(disputed, 20) == {"r1.1": (None, 200), "r2.1": (None, 100)}


def test_what_may_be_billed_for_less_stands_against_no_claim(disputed, opened, settled, write):
    """An answer that nothing told of is booked at 2,000 and billed at 20, as all claims are."""
    unseen = settled(3, settled_us=NOON, cost_pusd=2_000, basis="bound")
    write(disputed[0], opened(3, opened_us=NOON - 1, bound_pusd=2_000), unseen)
    found = bill(disputed, 500 + 20)
    assert (found["r1.1"], found["r2.1"]) == ((BILLED, 200), (BILLED, 100))


def test_what_is_owed_beside_the_books_says_nothing_of_claims(disputed):
    assert bill(disputed, 1, PostingMode.ADDS) == {"r1.1": (None, 200), "r2.1": (None, 100)}


def test_what_a_person_waived_stays_waived_and_a_correction_corrects(disputed):
    engine, provider = disputed
    with engine.begin() as connection:
        resolve_claims(connection, {"r1.1": 0}, Resolution(WAIVED, 1, "ann"))
    assert bill(disputed, 100) == {"r1.1": (WAIVED, 0), "r2.1": (BILLED, 0)}
    found = bill(disputed, 200, PostingMode.REPLACES)
    assert found == {"r1.1": (WAIVED, 0), "r2.1": (BILLED, 100)}
    with engine.begin() as connection:
        days = range(NUMBER + 1, NUMBER + 2)
        reconcile_claims(connection, provider, days, {}, Resolution(BILLED, 2, "bob"))
    assert claims_in(engine) == found
