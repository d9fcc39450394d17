"""A link is proved before anything under it goes: by its leaves, and by what is beside them."""

import pytest
from sqlalchemy import select, text

from ledger.orm import tables as orm
from ledger.seals.link_proof import (
    ATTEMPTS,
    SealMismatch,
    beside_of,
    in_groups,
    prove_beside,
    prove_link,
)
from ledger.seals.seal import SealRanges
from ledger.seals.sealer import link_of


@pytest.fixture
def books(engine, opened, settled, write, seal_all):
    write(engine, opened(1, content="card:mask"), settled(1), opened(2), settled(2))
    seal_all(engine)
    return engine


def proved(connection):
    link = link_of(connection.execute(select(orm.SealRow.__table__)).one())
    return prove_link(connection, SealRanges(), link)


def test_leaves_and_what_is_beside_them_are_those_of_the_link(books) -> None:
    with books.connect() as connection:
        leaves, members = proved(connection)
        assert [member.seq for member in members] == [1, 2]
        assert len(beside_of(leaves, ATTEMPTS)) == 1
        prove_beside(connection, 1, 0, leaves)
        prove_beside(connection, 1, 3, leaves)  # a part that a host without an annex retired


def test_an_edit_is_refused_in_a_leaf_and_beside_it(books) -> None:
    with books.begin() as connection:
        connection.execute(text("UPDATE attempts SET content = 'none' WHERE seq = 2"))
        leaves, _ = proved(connection)
        with pytest.raises(SealMismatch):
            prove_beside(connection, 1, 0, leaves)
        connection.execute(text("UPDATE attempts SET team_id = 'other' WHERE seq = 2"))
        with pytest.raises(SealMismatch):
            proved(connection)


def test_long_lists_are_named_in_groups() -> None:
    assert [len(group) for group in in_groups(range(1_001))] == [500, 500, 1]
