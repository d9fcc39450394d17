"""What has settled is sealed once; what settles later, by a later link."""

import pytest
from sqlalchemy import select, text

from ledger.journals.records import ComparedCost
from ledger.orm import tables as orm
from ledger.seals import sealed
from ledger.seals.sealer import Sealer
from ledger.writing.repository import LedgerRepository


def count(engine, table):
    with engine.connect() as connection:
        return len(connection.execute(select(table.__table__)).all())


@pytest.fixture
def books(books_of_each):
    return books_of_each


def test_empty_books_need_no_seal(engine, seal_all, seal_findings):
    assert seal_all(engine) == 0
    assert seal_findings(engine) == []


def test_what_is_sealed_is_proved_and_sealed_once(books, seal_all, seal_findings):
    assert seal_all(books) > 0
    assert seal_findings(books) == []
    assert seal_all(books) == 0
    assert count(books, orm.SealRow) == 1


def test_one_row_a_link_says_the_same(books, seal_all, seal_findings):
    seal_all(books, rows_at_once=1)
    assert count(books, orm.SealRow) > 2
    assert seal_findings(books) == []


def test_an_open_attempt_is_sealed_when_it_has_settled(
    books, settled, write, seal_all, seal_findings
):
    seal_all(books)
    write(books, settled(3))
    assert seal_all(books) > 0
    assert seal_findings(books) == []
    with books.begin() as connection:
        connection.execute(text("UPDATE attempts SET output_tokens = 1 WHERE attempt_id = 'r3.1'"))
    assert seal_findings(books)


def test_a_lost_attempt_is_sealed_and_sealed_again_with_its_evidence(
    books, settled, write, seal_all, seal_findings
):
    seal_all(books)
    LedgerRepository(books, host="h").settle_lost("j", at_us=6)
    assert seal_all(books) > 0
    assert seal_findings(books) == []
    write(books, settled(3), journal="k")
    assert seal_all(books) > 0
    assert seal_findings(books) == []
    assert count(books, orm.SealMarkRow) == 2


def test_two_that_seal_at_once_make_one_chain(books, seal_findings):
    item, other = Sealer(books), Sealer(books)
    write_link = item.seal(at_us=7), other.seal(at_us=8)
    assert write_link[0] > 0
    assert write_link[1] == 0
    assert seal_findings(books) == []


def test_an_attempt_that_settles_while_a_link_is_read_is_whole_in_it_or_open(
    books, settled, write, seal_all, seal_findings, monkeypatch
):
    """By another host, between two queries of the same link: it had no comparators yet, or all."""
    compared = (ComparedCost("openai/gpt-4o", 1, 7),)
    by_attempt, late = sealed._by_attempt, [settled(3, compared=compared)]

    def then_settled(connection, inside):
        found = list(by_attempt(connection, inside))
        while late:
            write(books, late.pop())
        yield from found

    monkeypatch.setattr(sealed, "_by_attempt", then_settled)
    assert seal_all(books) > 0
    assert not late
    assert seal_findings(books) == []
