"""The annex is one chain from its first entry on; what it holds is tried beside its writers."""

import pytest
from sqlalchemy import text

from ledger.seals.annex import AnnexText, add_entries
from ledger.verify.annexes import annexes_hold


@pytest.fixture
def entered(engine):
    with engine.begin() as connection:
        for number in range(4):
            add_entries(connection, [AnnexText("any", str(number), 1, b"x")], at_us=number)
    return engine


def test_an_unbroken_chain_has_no_findings(entered) -> None:
    with entered.connect() as connection:
        assert list(annexes_hold(connection)) == []


@pytest.mark.parametrize("edit", [
    "UPDATE seal_annexes SET at_us = 9 WHERE number = 2",
    "UPDATE seal_annexes SET rows = 2 WHERE number = 3",
    "DELETE FROM seal_annexes WHERE number = 2",
    "UPDATE seal_annexes SET number = 9 WHERE number = 4",
    "UPDATE seal_annexes SET kind = 'link', subject = '7' WHERE number = 4",
])  # fmt: skip
def test_an_entry_that_was_edited_is_found(entered, edit) -> None:
    with entered.begin() as connection:
        connection.execute(text(edit))
        assert list(annexes_hold(connection))
