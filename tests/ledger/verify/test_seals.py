"""Every edit of what is sealed is found, on either database."""

import random

import pytest
from sqlalchemy import text

from ledger.orm.tables import SealRow
from ledger.seals.sealer import head
from ledger.verify.heads import entry_is_there
from ledger.writing.repository import LedgerRepository


@pytest.fixture
def books(books_of_each):
    return books_of_each


def test_a_lost_attempt_cannot_be_edited_meanwhile(books, seal_all, seal_findings):
    LedgerRepository(books, host="h").settle_lost("j", at_us=6)
    seal_all(books)
    with books.begin() as connection:
        connection.execute(text("UPDATE attempts SET cost_pusd = 1 WHERE status = 'lost'"))
    assert [subject for subject, _ in seal_findings(books)] == ["attempt 3"]


EDITS = {
    "an attempt's cost": "UPDATE attempts SET cost_pusd = cost_pusd + 1 WHERE attempt_id = 'r1.1'",
    "an attempt's team": "UPDATE attempts SET team_id = 'other' WHERE attempt_id = 'r2.1'",
    "an attempt that is gone": "DELETE FROM attempts WHERE attempt_id = 'r2.1'",
    "an attempt opened again": "UPDATE attempts SET settled_us = NULL WHERE attempt_id = 'r2.1'",
    "a comparator": "UPDATE compared SET cost_pusd = 8 WHERE position = 1",
    "a comparator that is gone": "DELETE FROM compared WHERE position = 1",
    "a posting": "UPDATE postings SET amount_pusd = amount_pusd + 1 WHERE seq = 1",
    "a posting that is gone": "DELETE FROM postings WHERE seq = 2",
    "an hour": "UPDATE gpu_hours SET idle_pusd = 19, used_pusd = 11",
    "an hour's team": "UPDATE gpu_hour_teams SET used_pusd = 4 WHERE team_id = 'a'",
    "a refusal": "UPDATE refusals SET team_id = 'other'",
    "a price": "UPDATE price_versions SET name = 'a/c'",
    "a link's time": "UPDATE seals SET sealed_us = 1 WHERE number = 1",
    "a link that is gone": "DELETE FROM seals WHERE number = 1",
    "a mark that is gone": "DELETE FROM seal_marks",
    "a price below the first": "INSERT INTO price_versions (version, name, since_us, price, source,"
    " recorded_us) SELECT 0, 'a/z', 0, price, '', 0 FROM price_versions",
    "a mark that names a link": "UPDATE seal_marks SET sealed_in = 99",
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_found(books, settled, edit, write, seal_all, seal_findings):
    seal_all(books)
    write(books, settled(3))  # the mark of the first link is resolved by the second
    seal_all(books)
    assert seal_findings(books) == []
    with books.begin() as connection:
        connection.execute(text(EDITS[edit]))
    assert seal_findings(books), edit


def test_an_attempt_that_is_put_under_a_seal_is_found(
    books, opened, settled, write, seal_all, seal_findings
):
    write(books, opened(4), settled(4))
    with books.begin() as connection:
        connection.execute(text("UPDATE attempts SET seq = 50 WHERE attempt_id = 'r4.1'"))
    seal_all(books)
    assert seal_findings(books) == []
    write(books, opened(5), settled(5))
    with books.begin() as connection:
        connection.execute(text("UPDATE attempts SET seq = 20 WHERE attempt_id = 'r5.1'"))
    assert seal_findings(books)


@pytest.mark.parametrize("edits", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_many_edits_are_all_found(
    engine, opened, settled, write, seal_all, seal_findings, edits: int
):
    """Every one of these single-row edits, each alone; the books are whole again between them."""
    write(engine, *(record for n in range(60) for record in (opened(n), settled(n))))
    seal_all(engine, rows_at_once=7)
    columns = ("cost_pusd", "output_tokens", "settled_us", "input_tokens", "opened_us")
    chance = random.Random(20261121)
    for _ in range(edits):
        column, seq = chance.choice(columns), chance.randint(1, 60)
        change = f"UPDATE attempts SET {column} = {column} + :by WHERE seq = {seq}"
        with engine.begin() as connection:
            connection.execute(text(change), {"by": 1})
        assert seal_findings(engine), change
        with engine.begin() as connection:
            connection.execute(text(change), {"by": -1})
    assert seal_findings(engine) == []


def test_a_noted_head_tells_books_that_were_cut_short(books, seal_all, seal_findings):
    with books.connect() as connection:
        assert head(connection)[0].number == 0
    seal_all(books, rows_at_once=1)
    with books.connect() as connection:
        link, chain = head(connection)
        assert entry_is_there(connection, SealRow, link.number, chain)
        assert not entry_is_there(connection, SealRow, link.number, b"x")
    with books.begin() as connection:
        connection.execute(text(f"DELETE FROM seals WHERE number = {link.number}"))
    assert seal_findings(books) == []  # a chain without its end looks whole: hence the note
    with books.connect() as connection:
        assert not entry_is_there(connection, SealRow, link.number, chain)
