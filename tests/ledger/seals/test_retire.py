"""Rows go, and what they came to stays: figures, proof, and whatever somebody may still need."""

from datetime import date

import pytest
from sqlalchemy import event, func, insert, select, text

from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.queries.reads import DAY_US, HOUR_US, Scope
from ledger.queries.rollups import rollup_progress
from ledger.reports.facts import facts, flagged
from ledger.seals import retire as retired
from ledger.seals.link_proof import SealMismatch
from ledger.seals.retire import LEAST_DAYS, AttemptRetirer, prospect
from ledger.seals.retirements import retired_totals
from ledger.sums.rollups import RetiredError, Rollups
from ledger.verify.checks import verify
from ledger.writing.repository import LedgerRepository

LATER_US = 2**62


@pytest.fixture
def books(make_random_ledger, engine, seal_all, kept_books):
    """Two days, lost, late and unpriced attempts among them; sealed in small links, added up."""

    def fill(engine):
        random = make_random_ledger(7, 250)
        random.adjusted = {}  # postings of invoices that are not there
        random.fill(engine)
        seal_all(engine, rows_at_once=70)
        while Rollups(engine).follow():
            pass
        return random

    random = kept_books.fill("retire", engine, fill)
    random.engine = engine
    random.middle_us = random.START_US + DAY_US
    return random


def retire(engine, before_us, **options):
    retirer, gone = AttemptRetirer(engine, **options), 0
    while True:
        step = retirer.step(before_us=before_us, at_us=1)
        gone += step.attempts
        if step.waits_for:
            return gone, step.waits_for


def findings(engine) -> set[str]:
    with engine.connect() as connection:
        return {f"{finding.check}: {finding.subject}" for finding in verify(connection).findings}


def figures(books):
    """By whole days, as sums have them."""
    scope = Scope(books.START_US, books.end_us)
    with books.engine.connect() as connection:
        here = rollup_progress(connection)
        assert here is not None
        once = facts(connection, scope, here)
        cells = queries.cells(connection, scope, bucket_us=DAY_US)
        hours = queries.hours(connection, scope, bucket_us=DAY_US)
        return (
            sorted(cells, key=repr),
            once.comparisons(),
            flagged(connection, scope),
            hours,
        )


def rows(engine, table) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_figures_and_proof_outlive_the_rows(books) -> None:
    engine, before = books.engine, figures(books)
    assert findings(engine) == set()
    tables = (orm.AttemptRow, orm.PostingRow, orm.SealRow, orm.RollupHourRow)
    counts = [rows(engine, table) for table in tables]
    gone, why = retire(engine, LATER_US, rows_at_once=23)
    assert gone > 150
    assert why == "there is no later seal"
    assert [rows(engine, table) for table in tables] == [counts[0] - gone, *counts[1:]]
    assert figures(books) == before
    assert findings(engine) == set()
    with engine.connect() as connection:
        query = select(orm.AttemptRow.status, orm.AttemptRow.flag).order_by(orm.AttemptRow.seq)
        *left, _ = connection.execute(query).all()  # the very last always stays
        assert retired_totals(connection).attempts == gone
    assert {"lost"} <= {status for status, _ in left}, "what was lost stays"
    assert all(flag in ("lost", "late") for _, flag in left)
    with pytest.raises(RetiredError):
        Rollups(engine).rebuild()


def test_sums_that_are_far_behind_are_read_where_rows_are_gone(books, monkeypatch) -> None:
    """Rows alone answered, without those that were retired: less was spent, and nobody said so."""
    before = figures(books)
    assert retire(books.engine, LATER_US)[0] > 0
    monkeypatch.setattr("ledger.queries.rollups.BEHIND", -1)
    assert figures(books) == before


def test_only_what_is_old_goes_and_the_rest_later(books) -> None:
    engine, before = books.engine, figures(books)
    first, why = retire(engine, books.START_US + DAY_US // 2)
    assert "not old enough" in why
    with engine.connect() as connection:
        seen = prospect(connection, before_us=LATER_US)
    assert seen.links > 0
    more, _ = retire(engine, LATER_US)
    assert more > 0
    assert first + more > 150
    assert figures(books) == before
    assert findings(engine) == set()


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE retirements SET attempts = attempts + 1 WHERE number = 2", "retirements_hold"),
        pytest.param(
            "DELETE FROM retirements WHERE number = 2", "retirements_hold", marks=pytest.mark.long
        ),
        pytest.param(
            "UPDATE retirements SET cost_pusd = 1 WHERE number = 2",
            "retirements_hold",
            marks=pytest.mark.long,
        ),
        ("UPDATE rollup_days SET attempts = attempts + 1", "sums_are_the_rows"),
        pytest.param(
            "UPDATE rollup_hours SET cost_low = cost_low + 1",
            "sums_are_the_rows",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "UPDATE postings SET at_us = at_us + 1 WHERE line = 0",
            "seals_hold",
            marks=pytest.mark.long,
        ),
        ("DELETE FROM postings WHERE entry_id LIKE 'r1_.1'", "entries_have_a_cause"),
        ("UPDATE retired_use SET engine_us = engine_us + 1", "hours_hold_every_settle"),
        ("UPDATE retired_bookings SET team_id = 'other'", "retirements_hold"),
        pytest.param("DELETE FROM retired_bookings", "retirements_hold", marks=pytest.mark.long),
        pytest.param(
            "UPDATE retirements SET bookings = NULL", "retirements_hold", marks=pytest.mark.long
        ),
        pytest.param(
            "DELETE FROM attempts WHERE flag = 'lost'", "seals_hold", marks=pytest.mark.long
        ),
    ],
)
def test_what_is_edited_afterwards_is_found(books, statement, check) -> None:
    retire(books.engine, LATER_US)
    with books.engine.begin() as connection:
        connection.execute(text(statement))
    assert check in {finding.partition(":")[0] for finding in findings(books.engine)}


def test_nothing_goes_that_is_not_what_was_sealed(books) -> None:
    with books.engine.begin() as connection:
        connection.execute(text("UPDATE attempts SET output_tokens = 1 WHERE seq = 3"))
    before = rows(books.engine, orm.AttemptRow)
    with pytest.raises(SealMismatch):
        retire(books.engine, LATER_US)
    assert rows(books.engine, orm.AttemptRow) == before


def test_killed_between_proof_and_commit_nothing_is_half_gone(books) -> None:
    engine, before = books.engine, figures(books)
    retire(engine, books.START_US + DAY_US // 2, rows_at_once=9)

    def die(_connection, _cursor, statement, *_rest) -> None:
        if statement.startswith("DELETE FROM attempts"):
            raise InterruptedError

    event.listen(engine, "before_cursor_execute", die)
    with pytest.raises(InterruptedError):
        retire(engine, LATER_US, rows_at_once=9)
    event.remove(engine, "before_cursor_execute", die)
    assert findings(engine) == set()
    retire(engine, LATER_US, rows_at_once=9)
    assert figures(books) == before
    assert findings(engine) == set()


def test_days_that_an_invoice_may_still_correct_wait(books) -> None:
    day = date(2026, 6, 1)
    invoice = {
        "party": "provider:openai", "format": "f", "name": "n", "digest": "d", "places": 2,
        "first_day": day, "last_day": day, "total_pusd": 0, "imported_us": 1, "imported_by": "p",
    }  # fmt: skip
    with books.engine.begin() as connection:
        connection.execute(insert(orm.InvoiceRow), [invoice])
    gone, why = retire(books.engine, LATER_US)
    assert (gone, "a day of openai for which no invoice is posted" in why) == (0, True)
    with books.engine.begin() as connection:
        connection.execute(text("UPDATE invoices SET posted_us = 5, last_day = '2026-06-02'"))
    assert retire(books.engine, LATER_US)[0] > 150


def test_what_is_not_added_up_or_not_sealed_waits(engine, opened, settled, write, seal_all) -> None:
    write(engine, opened(1), settled(1), opened(2))
    assert retire(engine, LATER_US) == (0, "there is no later seal")
    seal_all(engine)
    assert retire(engine, LATER_US) == (0, "seal 1 is not added up")
    while Rollups(engine).follow():
        pass
    assert retire(engine, LATER_US)[0] == 1
    assert rows(engine, orm.AttemptRow) == 1, "what is under way stays"
    write(engine, settled(2), opened(3))
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    assert retire(engine, LATER_US)[0] == 1, "and goes with the link that sealed it"
    assert not {"seals_hold", "retirements_hold", "sums_are_the_rows"} & {
        finding.partition(":")[0] for finding in findings(engine)
    }


def test_an_hour_is_corrected_after_its_attempts_went(books) -> None:
    """Settles come late: their hours still count what retired attempts used."""
    engine = books.engine
    retire(engine, LATER_US)
    records = list(books._own(3, first=10**8))
    LedgerRepository(engine, host="h").import_records(
        records, journal="x", at_us=books.end_us + HOUR_US
    )
    assert findings(engine) == set()


def test_a_months_window_is_never_retired() -> None:
    assert LEAST_DAYS > 31 + 1


def test_windows_are_locked_in_one_order_however_many_groups_there_are(
    engine, opened, settled, write, monkeypatch
) -> None:
    """By groups the second one's windows stood before the first one's: grants wait crosswise."""
    monkeypatch.setattr("ledger.database.NAMED_AT_ONCE", 1)
    wide, narrow = Hold("global@month", 7, 1_000), Hold("key:k1@month", 7, 1_000)
    for number, holds in ((1, (narrow,)), (2, (narrow, wide)), (3, ())):
        end = settled(number, cost_pusd=5, claimed_pusd=15, plausible_pusd=10)
        write(engine, opened(number, holds=holds), end)
    locked: list[str] = []

    def watch(_connection, _cursor, statement, parameters, *_):
        if statement.startswith("SELECT budget_windows.claimed_pusd"):
            given = parameters.values() if isinstance(parameters, dict) else parameters
            locked.extend(value for value in given if value != 7)

    with engine.begin() as connection:
        seqs = connection.execute(select(orm.AttemptRow.seq).order_by(orm.AttemptRow.seq))
        event.listen(engine, "before_cursor_execute", watch)
        retired._delete(connection, [*seqs.scalars()][:2])
    event.remove(engine, "before_cursor_execute", watch)
    assert locked == ["global@month", "key:k1@month"]
    with engine.connect() as connection:
        claimed = connection.execute(select(orm.BudgetWindowRow.claimed_pusd)).scalars().all()
    assert claimed == [0, 0]
