"""Postings, refusals and holds go, and what they came to stays: balances, figures, proof."""

from collections import Counter

import msgspec
import pytest
from sqlalchemy import event, func, insert, select, text

from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.queries.reads import DAY_US, HOUR_US, Scope
from ledger.queries.traffic import refused_requests
from ledger.seals.compact import PostingCompactor
from ledger.seals.link_proof import SealMismatch
from ledger.seals.retire import AttemptRetirer
from ledger.sums.rollups import Rollups
from ledger.verify.checks import verify
from ledger.writing.repository import LedgerRepository

LATER_US = 2**62


@pytest.fixture
def books(make_random_ledger, engine, seal_all, refused, kept_books):
    """Two days with refusals; sealed in small links, added up, every attempt retired that may."""

    def fill(engine):
        random = make_random_ledger(7, 70)
        random.adjusted = {}  # postings of invoices that are not there
        random.fill(engine)
        start, day = random.START_US, 2 * DAY_US
        rows = [
            msgspec.structs.replace(
                refused(n), refused_us=start + n * day // 30, team_id="search" if n % 3 else "ads",
                scope=None if n % 2 else "team:ads",
            ) for n in range(30)
        ]  # fmt: skip
        LedgerRepository(engine, host="h").import_records(rows, journal="r", at_us=random.end_us)
        seal_all(engine, rows_at_once=70)
        while Rollups(engine).follow():
            pass
        return random

    random = kept_books.fill("compact", engine, fill)
    random.engine = engine
    return random


def retire(engine) -> None:
    retirer = AttemptRetirer(engine)
    while not retirer.step(before_us=LATER_US, at_us=1).waits_for:
        pass


def condense(engine, before_us=LATER_US, **options):
    condenser, postings, refusals = PostingCompactor(engine, **options), 0, 0
    while True:
        step = condenser.step(before_us=before_us, at_us=1)
        postings, refusals = postings + step.postings, refusals + step.refusals
        if step.waits_for:
            return postings, refusals, step.waits_for


def findings(engine) -> set[str]:
    with engine.connect() as connection:
        return {f"{finding.check}: {finding.subject}" for finding in verify(connection).findings}


def balances(engine) -> dict[tuple[str, int], int]:
    """By account and day: of single postings, and of those that went."""
    found: Counter = Counter()
    with engine.connect() as connection:
        for table, day in (
            (orm.PostingRow, orm.PostingRow.at_us - orm.PostingRow.at_us % DAY_US),
            (orm.CondensedPostingRow, orm.CondensedPostingRow.day_us),
        ):
            for account, day_us, pusd in connection.execute(
                select(table.account, day, table.amount_pusd)
            ):
                found[account, day_us] += pusd
    return {key: pusd for key, pusd in found.items() if pusd}


def refusals(books):
    scopes = (
        Scope(books.START_US, books.end_us),
        Scope(books.START_US, books.end_us, "ads"),
        Scope(books.START_US + 5 * HOUR_US, books.START_US + 20 * HOUR_US),
    )
    with books.engine.connect() as connection:
        return [
            (queries.refusals(connection, scope), refused_requests(connection, scope))
            for scope in scopes
        ]


def rows(engine, table) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def only_what_must_stay_is_there(engine) -> None:
    """Under condensed links: entries of closed hours, and of attempts that are there."""
    with engine.connect() as connection:
        until = select(orm.SealRow.postings_to).where(
            orm.SealRow.number
            == select(func.max(orm.PostingCompactionRow.last_link)).scalar_subquery()
        )
        covered = orm.PostingRow.seq <= until.scalar_subquery()
        left = set(connection.execute(select(orm.PostingRow.entry_id).where(covered)).scalars())
        there = set(connection.execute(select(orm.AttemptRow.attempt_id)).scalars())
    assert any(rest.startswith("gpu:") for rest in left)
    of_attempts = {rest.removesuffix(":suspense") for rest in left if not rest.startswith("gpu:")}
    assert of_attempts <= there


@pytest.mark.parametrize("at_once", [40, pytest.param(10**6, marks=pytest.mark.long)])
def test_balances_figures_and_proof_outlive_the_rows(books, at_once) -> None:
    engine, before, said = books.engine, balances(books.engine), refusals(books)
    assert findings(engine) == set()
    assert condense(engine) == (0, 0, "attempts of seal 1 are not retired")
    retire(engine)
    young = condense(engine, books.START_US + DAY_US // 4, rows_at_once=40)
    assert (young[0], "not old enough" in young[2]) == (0, True)
    there = rows(engine, orm.PostingRow)
    postings, refused, why = condense(engine, rows_at_once=at_once)
    # The very last seal's day has not ended; the fixture seals all within one.
    assert why == "there is no later seal"
    if at_once == 40:
        assert postings > 50
        assert refused == 29, "all but the last"
        assert rows(engine, orm.PostingRow) == there - postings
        assert rows(engine, orm.CondensedPostingRow) < postings / 2
        only_what_must_stay_is_there(engine)
    assert balances(engine) == before
    assert refusals(books) == said
    assert findings(engine) == set()


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        pytest.param(
            "UPDATE condensings SET postings = postings + 1 WHERE number = 2",
            "condensings_hold",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "DELETE FROM condensings WHERE number = 2", "condensings_hold", marks=pytest.mark.long
        ),
        ("UPDATE condensed_postings SET account = 'x' WHERE line = 0", "condensings_hold"),
        pytest.param(
            "DELETE FROM condensed_refusals WHERE line = 0",
            "condensings_hold",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "DELETE FROM condensed_postings", "entries_have_a_cause", marks=pytest.mark.long
        ),
        pytest.param("DELETE FROM condensings", "seals_hold", marks=pytest.mark.long),
        pytest.param(
            "UPDATE postings SET at_us = at_us + 1 WHERE entry_id LIKE 'gpu:%'",
            "seals_hold",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "DELETE FROM postings WHERE entry_id IN (SELECT attempt_id FROM attempts)",
            "seals_hold",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_is_edited_afterwards_is_found(books, statement, check) -> None:
    retire(books.engine)
    condense(books.engine, rows_at_once=40)
    with books.engine.begin() as connection:
        connection.execute(text(statement))
    assert check in {finding.partition(":")[0] for finding in findings(books.engine)}


def test_nothing_goes_that_is_not_what_was_sealed(books) -> None:
    retire(books.engine)
    with books.engine.begin() as connection:
        connection.execute(text("UPDATE postings SET amount_pusd = 1 - amount_pusd WHERE seq = 3"))
    before = rows(books.engine, orm.PostingRow)
    with pytest.raises(SealMismatch):
        condense(books.engine, rows_at_once=40)
    assert rows(books.engine, orm.PostingRow) == before


def test_killed_before_its_commit_nothing_is_half_gone(books) -> None:
    engine, before = books.engine, balances(books.engine)
    retire(engine)

    def die(_connection, _cursor, statement, *_rest) -> None:
        if statement.startswith("DELETE FROM refusals"):
            raise InterruptedError

    event.listen(engine, "before_cursor_execute", die)
    with pytest.raises(InterruptedError):
        condense(engine, rows_at_once=40)
    event.remove(engine, "before_cursor_execute", die)
    assert findings(engine) == set()
    condense(engine, rows_at_once=40)
    assert balances(engine) == before
    assert findings(engine) == set()


@pytest.mark.long
def test_an_hour_is_corrected_after_its_postings_went(books) -> None:
    engine = books.engine
    retire(engine)
    condense(engine, rows_at_once=40)
    late = list(books._own(3, first=10**8))
    LedgerRepository(engine, host="h").import_records(
        late, journal="x", at_us=books.end_us + HOUR_US
    )
    assert findings(engine) == set()


def test_holds_go_with_their_attempts_into_sums_by_window(
    engine, opened, settled, write, seal_all
) -> None:
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [
            {"id": "team:a@day", "scope": "team:a", "period": "day", "hard": False,
             "limit_pusd": 10**18, "created_us": 0}])  # fmt: skip
    own = {"backend": "own"}
    write(
        engine, *(item for n in range(1, 6) for item in (opened(n, **own), settled(n))), opened(6)
    )
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    before, held = findings(engine), rows(engine, orm.HoldRow)
    assert held > 0
    retire(engine)
    with engine.connect() as connection:
        sums = connection.execute(select(func.sum(orm.RetiredHoldsRow.holds))).scalar_one()
    assert rows(engine, orm.HoldRow) == held - sums
    assert sums > 0
    assert findings(engine) == before
    with engine.begin() as connection:
        connection.execute(text("UPDATE retired_holds SET actual_pusd = '1'" if
                                engine.dialect.name == "sqlite" else
                                "UPDATE retired_holds SET actual_pusd = 1"))  # fmt: skip
    assert {finding.partition(":")[0] for finding in findings(engine) - before} == {
        "totals_equal_sums"
    }
