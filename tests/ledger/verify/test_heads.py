"""The heads of all chains are noted as one word, and missed where a chain was cut."""

import pytest
from sqlalchemy import text

from ledger.seals.annex import SealAnnex, annex_head
from ledger.verify.heads import book_heads, heads_are_there, parse_heads


def test_empty_books_have_one_head(engine) -> None:
    with engine.connect() as connection:
        assert book_heads(connection) == (0, f"0:{bytes(32).hex()}")
        assert heads_are_there(connection, parse_heads(book_heads(connection)[1]))


@pytest.mark.parametrize("table", ["seals", "seal_annexes"])
def test_a_chain_that_was_cut_is_missed(books_of_each, table, seal_all) -> None:
    seal_all(books_of_each)
    SealAnnex(books_of_each).follow(at_us=8)
    with books_of_each.begin() as connection:
        sealed_us, word = book_heads(connection)
        noted = parse_heads(word)
        assert (sealed_us, len(noted), noted[2]) == (7, 3, annex_head(connection))
        assert heads_are_there(connection, noted)
        assert heads_are_there(connection, noted[:1])  # as an earlier version printed it
        connection.execute(text(f"DELETE FROM {table}"))
        assert not heads_are_there(connection, noted)


@pytest.mark.parametrize("word", ["", "1", "1:xy", "1:00:2", "a:00"])
def test_what_is_no_head_is_refused(word) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_heads(word)
