"""Lines of rotations, and what came from whom."""

from sqlalchemy import insert

from ledger.identity.keychanges import ChangeAuthor, make, revoke, rotate
from ledger.identity.keys import KeySpec
from ledger.identity.lineage import MOST_COUNTED, NOBODYS, KeyOrigin, descend, ends_of_lines, follow
from ledger.orm import tables as orm

NOW_US, HOUR_US = 1_780_000_000_000_000, 3_600_000_000
PEPPER = b"p" * 32


def test_a_successor_keeps_what_bound_the_one_before() -> None:
    second = follow("one", NOBODYS)
    assert second == KeyOrigin("one", (), ("one",))
    assert follow("two", second) == KeyOrigin("one", (), ("one", "two"))


def test_after_very_many_rotations_makers_and_the_first_still_count() -> None:
    origin = descend("maker", NOBODYS)
    for number in range(100):
        origin = follow(f"key-{number}", origin)
    assert len(origin.counts_on) == MOST_COUNTED
    assert origin.counts_on[:2] == ("maker", "key-0")
    assert origin.counts_on[-1] == "key-99"


def test_what_is_made_names_all_makers_by_their_lines() -> None:
    child = descend("two", follow("one", NOBODYS))
    assert child == KeyOrigin(None, ("one",), ("one", "two"))
    grandchild = descend("three", child)
    assert grandchild.makers == ("one", "three")
    assert grandchild.counts_on == ("one", "two", "three")
    assert (grandchild.root, NOBODYS.root) == ("key one", None)
    assert descend("k", KeyOrigin(member="ann")).root == "person ann"


def test_a_line_ends_with_its_last_key(engine) -> None:
    author = ChangeAuthor("ann", None, NOW_US)
    with engine.begin() as connection:
        connection.execute(insert(orm.MetaRow).values(name="key_generation", value=1))
        first = make(connection, KeySpec(name="k"), author, pepper=PEPPER)
        line = [first.key_id]

        def end() -> int | None:
            return next(ends_of_lines(connection, line))

        assert end() is None
        ends_us = NOW_US + HOUR_US
        second = rotate(connection, first.key_id, author, pepper=PEPPER, ends_us=ends_us)
        assert end() is None
        revoke(connection, second.key_id, author)
        assert end() == NOW_US + HOUR_US
        revoke(connection, first.key_id, author)
        assert end() == 0
        assert list(ends_of_lines(connection, ())) == []
