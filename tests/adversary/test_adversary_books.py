"""Schedules go through journal, writer and `ledger verify`; each judge of the books has a control.

Some 270 schedules in every run, on SQLite and on PostgreSQL; the long tier plays as many as the
environment says, 300,000 by itself.
"""

import os
from collections import Counter

import adversary
import pytest
from adversary_books import AdversaryLedger, faults_in_books, write_books
from adversary_kinds import KINDS, mixed
from adversary_parts import drawn_and_recombined
from sqlalchemy import delete, text, update

from ledger.database import make_engine, migrate
from ledger.orm.books import AttemptRow, ClaimRow, PostingRow

MIXED, OF_A_KIND = 90, 3
LONG = int(os.environ.get("ADVERSARY_SCHEDULES", "300000"))


@pytest.fixture(scope="module")
def played(world, tmp_path_factory) -> AdversaryLedger:
    ledger = AdversaryLedger(tmp_path_factory.mktemp("played"))
    for number, strategy in enumerate(KINDS.values()):
        for schedule in drawn_and_recombined(strategy, OF_A_KIND, number):
            ledger.play(world, schedule)
    for schedule in drawn_and_recombined(mixed(), MIXED, 1):
        ledger.play(world, schedule)
    ledger.end()
    return ledger


@pytest.fixture
def engine(database_url: str, played, tmp_path):
    migrate(database_url)
    engine = make_engine(database_url)
    write_books(played, engine, tmp_path)
    yield engine
    engine.dispose()


def edit(engine, statement) -> None:
    with engine.begin() as connection:
        connection.execute(statement)


def test_real_ledgers_keep_every_invariant(played, engine) -> None:
    assert len(played.schedules) > 250
    assert len(played.sent) > 300
    assert faults_in_books(played, engine) == []


# On the same books, one after the other: what each edit breaks stays broken.
EDITS = {
    "limit": text("UPDATE budgets SET limit_pusd = limit_pusd / 1000000000000"),
    "hold": update(AttemptRow).values(bound_pusd=0),
    "bill": update(PostingRow)
    .where(PostingRow.account.startswith("payable:"))
    .values(amount_pusd=PostingRow.amount_pusd - 1),
    "disputed": update(AttemptRow).values(flag="disputed"),
    "mark": update(AttemptRow).values(flag=None),
    "least": update(AttemptRow).values(cost_pusd=0),
    "verify": delete(ClaimRow),
    "row": text("DELETE FROM attempts WHERE seq = (SELECT max(seq) FROM attempts)"),
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_judge_finds_each_edit_of_the_books(played, engine) -> None:
    for name, statement in EDITS.items():
        edit(engine, statement)
        names = Counter(fault.partition(":")[0] for fault in faults_in_books(played, engine))
        assert names[name], name


@pytest.mark.long
def test_as_many_schedules_as_the_long_tier_plays() -> None:
    assert adversary.main(["--schedules", str(LONG), "--jobs", "2"]) == 0
