"""A posted invoice says which part of its days' claims is owed; only that goes on counting."""

import itertools
from datetime import date, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from retired_days import post_lines, retire_before
from sqlalchemy import delete, select, update

from ledger.accounts import provider_payable
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.open_claims import (
    BILLED,
    WAIVED,
    Resolution,
    list_claims,
    resolve_claims,
    serialize_claims,
)
from ledger.declared import declare
from ledger.instants import day_number
from ledger.invoices.billed_claims import reconcile_claims, wait_texts
from ledger.invoices.books import PostingMode, post_invoice, store
from ledger.invoices.files import InvoiceFile, InvoiceLine
from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.orm.types import exact_sum
from ledger.spans import DAY_US
from ledger.verify.budgets import windows_count_claims

DAY = date(2026, 5, 6)
NUMBER = day_number(DAY)
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


FILES = itertools.count(1)


def bill(disputed, amount, manner=PostingMode.WHOLE, *, ahead=0, around=1, item="m", offset=0):
    """Post a bill of an amount on the day `ahead` of the claims', and `around` days about it."""
    engine, provider = disputed
    day = DAY + timedelta(days=ahead)
    edges = {day + timedelta(days=way * around) for way in (-1, 1)} - {day}
    lines = (InvoiceLine(day, item, amount), *(InvoiceLine(edge, item, 0) for edge in edges))
    file = InvoiceFile("csv", lines, 12, f"digest {next(FILES)}", offset)
    party, at_us = f"provider:{provider}", LATER + next(FILES)
    number = store(engine, file, party=party, name="x.csv", by="ann", at_us=at_us)
    post_invoice(engine, number, by="ann", at_us=at_us, manner=manner)
    return claims_in(engine)


def waits_in(engine):
    with engine.connect() as connection:
        claims = list_claims(connection, None, whole=True, limit=99)
        return wait_texts(connection, claims)


OPEN = {"r1.1": (None, 200), "r2.1": (None, 100)}
WHOLE = {"r1.1": (BILLED, 200), "r2.1": (BILLED, 100)}


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
    assert claims_in(disputed[0]) == OPEN
    assert bill(disputed, amount) == {"r1.1": (BILLED, first), "r2.1": (BILLED, second)}
    assert waits_in(disputed[0]) == {}


@pytest.mark.parametrize(("offset", "is_reached"), [(0, False), (719, False), (720, True)])
def test_claims_and_bookings_are_of_the_providers_own_days(disputed, offset, is_reached):
    """At noon UTC it is tomorrow in the farthest zones, and their bill may be a day behind."""
    claims = bill(disputed, 500, ahead=2, offset=offset)
    assert (claims == WHOLE) is is_reached


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_a_claim_may_be_billed_on_a_neighbouring_day(disputed, ahead):
    """Its booking stands there, too: a batch, a midnight between, the start's day, another zone."""
    assert bill(disputed, 500, ahead=ahead, around=0) == WHOLE


@pytest.mark.parametrize("ahead", [-1, 1])
def test_a_bill_of_the_neighbouring_day_alone_adds_to_what_the_day_has(disputed, ahead):
    """The booking was billed on its day, and what is beyond on another one."""
    assert bill(disputed, 100, around=0) == OPEN
    assert bill(disputed, 400, ahead=ahead, around=0) == WHOLE


def test_a_claim_is_open_until_every_bill_that_may_have_it_is_posted(disputed):
    engine = disputed[0]
    assert set(waits_in(engine).values()) == {"no invoice of 2026-05-05 is posted"}
    bill(disputed, 100, around=0)
    bill(disputed, 0, ahead=-1, around=0)
    assert claims_in(engine) == OPEN
    assert set(waits_in(engine).values()) == {"no invoice of 2026-05-07 is posted"}
    found = bill(disputed, 0, ahead=1, around=0)
    assert found == {"r1.1": (BILLED, 0), "r2.1": (BILLED, 0)}


def test_a_day_that_a_months_bills_leave_out_holds_no_claim_open(disputed):
    assert bill(disputed, 100, around=0) == OPEN
    found = bill(disputed, 7, ahead=9, around=0)
    assert found == {"r1.1": (BILLED, 0), "r2.1": (BILLED, 0)}


def test_a_day_billed_for_less_than_was_booked_waits_for_the_next_bill(disputed):
    """A part of the bill may be missing; nothing narrows a budget for good."""
    assert bill(disputed, 20) == OPEN
    assert "less than was booked" in waits_in(disputed[0])["r1.1"]
    found = bill(disputed, 7, ahead=9, around=0)
    assert found == {"r1.1": (BILLED, 0), "r2.1": (BILLED, 0)}


def test_an_imported_part_that_is_not_posted_is_waited_for(disputed):
    engine, provider = disputed
    bill(disputed, 20)
    file = InvoiceFile("csv", (InvoiceLine(DAY, "m", 480),), 12, "part")
    number = store(engine, file, party=f"provider:{provider}", name="y.csv", by="ann", at_us=LATER)
    bill(disputed, 7, ahead=9, around=0)
    assert claims_in(engine) == OPEN
    text = f"invoice {number} of these days is imported and not posted"
    assert set(waits_in(engine).values()) == {text}
    post_invoice(engine, number, by="ann", at_us=2 * LATER, manner=PostingMode.ADDS)
    assert claims_in(engine) == WHOLE


@pytest.mark.parametrize("parts", [(20, 480), (480, 20), (100, 400), (400, 100)])
def test_parts_of_a_bill_count_together_in_either_order(disputed, parts):
    bill(disputed, parts[0])
    assert bill(disputed, parts[1], PostingMode.ADDS) == WHOLE
    assert bill(disputed, 0, PostingMode.ADDS) == WHOLE


def test_parts_alone_settle_once_they_have_what_was_booked(disputed):
    assert bill(disputed, 20, PostingMode.ADDS) == OPEN
    assert bill(disputed, 480, PostingMode.ADDS) == WHOLE


def test_a_credit_takes_back_what_a_bill_had(disputed):
    assert bill(disputed, 500) == WHOLE
    found = bill(disputed, -200, PostingMode.ADDS)
    assert found == {"r1.1": (BILLED, 150), "r2.1": (BILLED, 50)}


def test_a_bill_that_names_models_settles_no_claim_of_another_model(
    disputed, opened, settled, write
):
    end = settled(3, settled_us=NOON, cost_pusd=50)
    write(disputed[0], opened(3, opened_us=NOON - 1, upstream_model="other-1"), end)
    assert bill(disputed, 900, item="other-1, input") == OPEN  # the claims' model is missing
    found = bill(disputed, 500, PostingMode.ADDS, item="gpt-4o-mini-2024-07-18, input")
    assert found == WHOLE


@pytest.mark.parametrize(("basis", "day"), [("bound", 0), ("estimated", -1), ("continuous", 1)])
def test_what_an_uncertain_booking_cost_settles_no_claim(
    disputed, opened, settled, write, basis, day
):
    """It is booked at 300; the bill has 120 of it, and none of the claims."""
    at_us = NOON + day * DAY_US
    unseen = settled(3, settled_us=at_us, cost_pusd=300, basis=basis)
    write(disputed[0], opened(3, opened_us=at_us - 1, bound_pusd=300), unseen)
    assert bill(disputed, 100 + 120) == {"r1.1": (BILLED, 0), "r2.1": (BILLED, 0)}
    found = bill(disputed, 100 + 300 + 200, PostingMode.REPLACES)
    assert found == {"r1.1": (BILLED, 150), "r2.1": (BILLED, 50)}


def test_what_a_person_waived_stays_waived_and_a_correction_corrects(disputed):
    engine, provider = disputed
    with engine.begin() as connection:
        resolve_claims(connection, {"r1.1": 0}, Resolution(WAIVED, 1, "ann"))
    assert bill(disputed, 100) == {"r1.1": (WAIVED, 0), "r2.1": (BILLED, 0)}
    found = bill(disputed, 200, PostingMode.REPLACES)
    assert found == {"r1.1": (WAIVED, 0), "r2.1": (BILLED, 25)}  # as if both were open
    assert bill(disputed, 20, PostingMode.REPLACES) == {"r1.1": (WAIVED, 0), "r2.1": (None, 100)}
    assert bill(disputed, 200, PostingMode.REPLACES) == found
    with engine.begin() as connection:
        reconcile_claims(connection, provider, Resolution(BILLED, 2, "bob"))
    assert claims_in(engine) == found
    with engine.connect() as connection:
        claims = list_claims(connection, None, whole=True, limit=9)
    assert {claim.resolved_by for claim in claims} == {"ann"}  # nothing was settled again


@pytest.fixture
def retired(engine, opened, settled, write, seal_all):
    """A claim of 300 at noon; the day before a booking of 1000 and two claims of 300."""
    early = NOON - DAY_US
    write(engine, opened(3, opened_us=early - 1), settled(3, settled_us=early, cost_pusd=1000))
    for number in (4, 5):
        claim = {"cost_pusd": 50, "claimed_pusd": 350, "plausible_pusd": 300}
        end = settled(number, settled_us=early, **claim)
        write(engine, opened(number, opened_us=early - 1), end)
    seal_all(engine)
    end = settled(1, settled_us=NOON, cost_pusd=50, claimed_pusd=350, plausible_pusd=200)
    write(engine, opened(1, opened_us=NOON - 1), end)
    write(engine, opened(6, opened_us=NOON - 1), settled(6, settled_us=NOON, cost_pusd=0))
    seal_all(engine)
    return engine


def bill_again(engine, *, ahead, kept=True):
    """Post the bill of three days, retire the first one, post another bill; return what changed."""
    billed = [(DAY - timedelta(days=1), 1100 + ahead), (DAY, 50), (DAY + timedelta(days=1), 0)]
    post_lines(engine, "openai", billed, PostingMode.WHOLE, at_us=LATER)
    before = claims_in(engine)["r1.1"]
    assert retire_before(engine, NOON - DAY_US // 2) == 3
    if not kept:
        with engine.begin() as connection:
            connection.execute(delete(orm.RetiredBookingRow))
            connection.execute(update(orm.RetirementRow).values(bookings=None))
    other = [(DAY + timedelta(days=9), 7)]
    post_lines(engine, "openai", other, PostingMode.WHOLE, at_us=LATER + 1)
    return before, claims_in(engine)["r1.1"]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("surplus", [0, 90, 600, 700])
def test_a_settled_claim_stays_when_its_neighbours_are_retired(retired, surplus, kept) -> None:
    """Red before: the bill of the retired booking paid the claim of the next day."""
    before, after = bill_again(retired, ahead=surplus, kept=kept)
    assert before == after == (BILLED, max(0, surplus - 600))


@pytest.mark.parametrize("number", [1, 2])
def test_who_waives_a_claim_first_moves_no_share_of_the_bill(disputed, number):
    """Red before: what the waived one would have had went to the other one."""
    engine, _ = disputed
    shares = {"r1.1": (BILLED, 150), "r2.1": (BILLED, 50)}
    with engine.begin() as connection:
        resolve_claims(connection, {f"r{number}.1": 0}, Resolution(WAIVED, 1, "ann"))
    found = bill(disputed, 300)
    assert found == {**shares, f"r{number}.1": (WAIVED, 0)}
    assert bill(disputed, 300, PostingMode.REPLACES) == found


DAYS = 6
DAY_OF = st.integers(0, DAYS - 1)
START = NUMBER * DAY_US
ACCOUNTS = ("team:search@month", "global@month")


class ClaimBooks(RuleBasedStateMachine):
    """Attempts with claims on any days, bills in any parts, corrections, waivers, new budgets."""

    engine = None
    write_records = None
    make: tuple = ()

    def __init__(self):
        super().__init__()
        self.asked, self.waived = {}, set()
        self.posted, self.owed, self.sure = {}, {}, {}  # by day
        self.surplus = 0
        self.budgets: list[BudgetSpec] = []
        with self.engine.begin() as connection:
            for table in (
                orm.ClaimRow, orm.HoldRow, orm.BudgetRow, orm.BudgetWindowRow, orm.GrantRow,
                orm.AttemptRow, orm.PostingRow, orm.InvoiceRow, orm.InvoiceItemRow,
            ):  # fmt: skip
                connection.execute(table.__table__.delete())

    @rule(day=DAY_OF, edge=st.booleans(), surplus=st.integers(0, 90), plausible=st.integers(0, 99))
    def ask(self, day, edge, surplus, plausible):
        opened, settled = self.make
        number = next(FILES)
        at_us = START + day * DAY_US + (0 if edge else DAY_US // 2)
        claim = {"claimed_pusd": 50 + surplus, "plausible_pusd": plausible} if surplus else {}
        holds = tuple(Hold(name, 7, 1_000) for name in ACCOUNTS[: 1 + number % 2])
        self.write_records(
            self.engine,
            opened(number, opened_us=at_us - 1, holds=holds),
            settled(number, settled_us=at_us, cost_pusd=50, **claim),
        )
        self.asked[f"r{number}.1"] = min(surplus, plausible)
        self.sure[day] = self.sure.get(day, 0) + 50
        self.owed[day] = self.owed.get(day, 0) + 50 + surplus

    @rule(day=DAY_OF, length=st.integers(1, 4), amount=st.integers(-60, 300),
          named=st.booleans(), adds=st.booleans())  # fmt: skip
    def post(self, day, length, amount, named, adds):
        last = min(day + length, DAYS)
        item = "gpt-4o-mini, input" if named else "usage"
        self.bill(
            {at: amount * (at == day) for at in range(day, last)}, item,
            PostingMode.ADDS if adds else PostingMode.REPLACES,
        )  # fmt: skip

    def bill(self, amounts, item, manner):
        lines = [InvoiceLine(DAY + timedelta(days=at), item, pusd) for at, pusd in amounts.items()]
        file, at_us = InvoiceFile("csv", tuple(lines), 12, f"d{next(FILES)}"), LATER + next(FILES)
        party = "provider:openai"
        number = store(self.engine, file, party=party, name="x", by="ann", at_us=at_us)
        post_invoice(self.engine, number, by="ann", at_us=at_us, manner=manner)
        for at, pusd in amounts.items():
            for said in (self.posted, self.owed):
                said[at] = pusd + (said.get(at, 0) if manner is PostingMode.ADDS else 0)
        self.recount()

    def recount(self):
        """Keep what bills have beyond what is sure: claims are matched when a bill is posted."""
        self.surplus = sum(max(0, pusd - self.sure.get(at, 0)) for at, pusd in self.posted.items())

    @precondition(lambda self: claims_in(self.engine))
    @rule(which=st.integers(0, 99))
    def waive(self, which):
        names = sorted(claims_in(self.engine))
        name = names[which % len(names)]
        with self.engine.begin() as connection:
            serialize_claims(connection)
            resolve_claims(connection, {name: 0}, Resolution(WAIVED, 1, "ann"))
        self.waived.add(name)

    @rule(kind=st.sampled_from(["user:*", "org:acme", "key:k1"]), day=DAY_OF)
    def declare_budget(self, kind, day):
        spec = BudgetSpec(kind, "month", 10**6, hard=True, timezone="UTC")
        self.budgets = [*{each.scope: each for each in (*self.budgets, spec)}.values()]
        at_us = START + day * DAY_US
        declare(self.engine, contracts=(), budgets=self.budgets, config=("h", "t"), at_us=at_us)

    @rule()
    def repeat(self):
        before = claims_in(self.engine)
        with self.engine.begin() as connection:
            reconcile_claims(connection, "openai", Resolution(BILLED, 3, "bob"))
        self.recount()
        again = claims_in(self.engine)
        with self.engine.begin() as connection:
            reconcile_claims(connection, "openai", Resolution(BILLED, 4, "eve"))
        assert claims_in(self.engine) == again
        assert before.keys() == again.keys()

    @rule(day=DAY_OF, amount=st.integers(0, 600))
    def close(self, day, amount):
        """Bills of every day, and one of a later day: nothing is open any more."""
        every = {at: amount * (at == day) for at in range(-1, DAYS + 1)}
        self.bill(every, "usage", PostingMode.REPLACES)
        self.bill({DAYS + 3: 1}, "usage", PostingMode.REPLACES)
        found = claims_in(self.engine)
        assert all(row[0] is not None for row in found.values())

    def owed_by_day(self):
        table = orm.PostingRow
        day = table.at_us.op("/")(DAY_US)
        query = select(day, exact_sum(table.amount_pusd)).group_by(day)
        with self.engine.connect() as connection:
            rows = connection.execute(query.where(table.account == provider_payable("openai")))
            return {int(at) - NUMBER: -int(pusd) for at, pusd in rows if pusd}

    @invariant()
    def holds(self):
        found = claims_in(self.engine)  # each window has the sum of its claims
        assert {name for name, row in found.items() if row[0] == WAIVED} == self.waived
        with self.engine.connect() as connection:
            waits = wait_texts(connection, list_claims(connection, None, whole=True, limit=999))
        assert {name for name, row in found.items() if row[0] is None} == waits.keys()
        for name, (word, counted) in found.items():
            assert counted <= (0 if word == WAIVED else self.asked[name])
            assert word is not None or counted == self.asked[name]
        assert sum(row[1] for row in found.values() if row[0] == BILLED) <= self.surplus

    @invariant()
    def postings_are_what_bills_say(self):
        """And of days without a bill what was booked and claimed, and of parts beside it."""
        assert self.owed_by_day() == {at: pusd for at, pusd in self.owed.items() if pusd}


def test_claims_follow_bills_whatever_happens(engine, write, opened, settled):
    steps, examples = (8, 10) if engine.dialect.name == "sqlite" else (6, 4)
    books = type("Books", (ClaimBooks,), {
        "engine": engine, "write_records": staticmethod(write), "make": (opened, settled),
    })  # fmt: skip
    run_state_machine_as_test(
        books, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )
