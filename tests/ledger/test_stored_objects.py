"""Stored objects as rows, on both databases: chains, pages, bounds, ends, and true sums."""

import threading
from functools import partial

import pytest
from sqlalchemy import func, select

from ledger import stored_objects
from ledger.database import make_engine
from ledger.orm.base import LedgerBase
from ledger.orm.stored import StoredBytesRow, StoredObjectRow
from ledger.stored_objects import (
    ROW_BYTES,
    ChainError,
    ObjectQuery,
    SealedObject,
    StorageBounds,
    cancel_object,
    delete_object,
    find_chain,
    find_object,
    find_objects,
    forget_objects,
    list_objects,
    renew_leases,
    store_objects,
)

AMPLE = StorageBounds(10**9, 10**9)
NOW_US, LATER_US = 1_000, 10**6


def make(name: str, team: str = "a", size: int = 100, **members) -> SealedObject:
    given = {
        "kind": "response", "parent": None, "residency": "any", "status": None,
        "wrapped_key": b"k" * 40, "sealed": b"s" * (size - 40), "created_us": NOW_US,
        "expires_us": LATER_US, **members,
    }  # fmt: skip
    return SealedObject(team_id=team, id=name, **given)


@pytest.fixture
def engine(database_url: str):
    made = make_engine(database_url)
    LedgerBase.metadata.create_all(
        made, tables=[StoredObjectRow.__table__, StoredBytesRow.__table__]
    )
    yield made
    made.dispose()


def bytes_of(engine) -> dict[str, int]:
    with engine.connect() as connection:
        return dict(connection.execute(select(StoredBytesRow.team_id, StoredBytesRow.bytes)).all())


def summed(engine) -> dict[str, int]:
    query = select(StoredObjectRow.team_id, func.sum(StoredObjectRow.size))
    with engine.connect() as connection:
        return dict(connection.execute(query.group_by(StoredObjectRow.team_id)).all())


def ids_of(engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(select(StoredObjectRow.id)).scalars())


def test_an_object_is_its_teams_alone_until_it_expires(engine) -> None:
    stored = make("r1", parent="r0", residency="internal_only", status="queued", lease_us=7)
    assert store_objects(engine, [stored], AMPLE)
    assert find_object(engine, "a", "r1", now_us=NOW_US) == stored
    read = partial(find_objects, engine, max_bytes=stored.size)
    assert read("a", ["r1", "r2"], now_us=NOW_US) == {"r1": stored}
    with pytest.raises(ChainError):
        find_objects(engine, "a", ["r1"], max_bytes=stored.size - 1, now_us=NOW_US)
    for team, now_us in (("b", NOW_US), ("a", LATER_US)):
        assert find_object(engine, team, "r1", now_us=now_us) is None
        assert read(team, ["r1"], now_us=now_us) == {}
    assert not delete_object(engine, "b", "r1")
    assert delete_object(engine, "a", "r1")
    assert not delete_object(engine, "a", "r1")
    assert bytes_of(engine)["a"] == 0


def test_an_object_of_the_same_id_takes_the_place_of_the_earlier(engine) -> None:
    store_objects(engine, [make("r1", status="queued")], AMPLE)
    store_objects(engine, [make("r1", team="b")], AMPLE)
    done = make("r1", size=300, status="completed")
    store_objects(engine, [done], AMPLE)
    assert find_object(engine, "a", "r1", now_us=NOW_US) == done
    assert find_object(engine, "b", "r1", now_us=NOW_US) == make("r1", team="b")
    assert bytes_of(engine) == {"a": 300 + ROW_BYTES, "b": 100 + ROW_BYTES}


def test_what_was_deleted_while_it_was_made_stays_deleted(engine) -> None:
    store_objects(engine, [make("r1", status="queued")], AMPLE)
    assert store_objects(engine, [make("r1", status="in_progress")], AMPLE, replaces=True)
    delete_object(engine, "a", "r1")
    assert not store_objects(engine, [make("r1"), make("i1")], AMPLE, replaces=True)
    assert ids_of(engine) == set()
    assert bytes_of(engine) == {"a": 0}


def test_a_change_keeps_its_place_and_items_renew_their_conversation(engine) -> None:
    store_objects(engine, [make("c1", kind="conversation"), make("c2", kind="conversation")], AMPLE)
    item = make("i1", kind="item", parent="c1", expires_us=LATER_US + 5)
    store_objects(engine, [item], AMPLE, renews="c1")
    store_objects(engine, [make("c1", kind="conversation", size=150)], AMPLE)
    query = ObjectQuery(team_id="a", kind="conversation", descending=False)
    listed = list_objects(engine, query, now_us=NOW_US)
    assert listed is not None
    assert [stored.id for stored in listed.objects] == ["c1", "c2"]
    store_objects(engine, [item], AMPLE, renews="c1")
    assert find_object(engine, "a", "c1", now_us=LATER_US + 1) is not None
    assert find_object(engine, "a", "c2", now_us=LATER_US + 1) is None


def test_chains(engine, monkeypatch) -> None:
    store_objects(
        engine,
        [make("r1"), make("r2", parent="r1"), make("r3", parent="r2"), make("fork", parent="r1")],
        AMPLE,
    )
    store_objects(engine, [make("r2", team="b", parent="r1")], AMPLE)

    def chain(team: str, last: str, max_bytes: int = 10**6, now_us: int = NOW_US) -> list[str]:
        found = find_chain(engine, team, last, max_bytes=max_bytes, now_us=now_us)
        return [stored.id for stored in found]

    assert chain("a", "r3") == ["r1", "r2", "r3"]
    assert chain("a", "fork") == ["r1", "fork"]
    assert chain("a", "r3", 3 * (100 + ROW_BYTES)) == ["r1", "r2", "r3"]
    for asked, missing in (
        (("a", "r9"), "r9"),
        (("b", "r2"), "r1"),  # another team's beginning is none
        (("a", "r3", 3 * (100 + ROW_BYTES) - 1), None),
        (("a", "r3", 10**6, LATER_US), "r3"),
    ):
        with pytest.raises(ChainError) as raised:
            chain(*asked)
        assert raised.value.missing == missing
    monkeypatch.setattr(stored_objects, "CHAIN_LIMIT", 2)
    with pytest.raises(ChainError):
        chain("a", "r3")
    monkeypatch.undo()
    delete_object(engine, "a", "r2")
    with pytest.raises(ChainError) as raised:
        chain("a", "r3")
    assert raised.value.missing == "r2"


def test_a_ring_of_answers_ends(engine) -> None:
    """No request makes one; a row that was altered could."""
    store_objects(engine, [make("r1", parent="r2"), make("r2", parent="r1")], AMPLE)
    with pytest.raises(ChainError):
        find_chain(engine, "a", "r1", max_bytes=10**4, now_us=NOW_US)


def test_pages(engine) -> None:
    items = [make(f"i{number}", kind="item", parent="c1") for number in range(5)]
    store_objects(engine, items, AMPLE)
    store_objects(
        engine, [make("x", kind="item", parent="c2"), make("c1", kind="conversation")], AMPLE
    )

    def page(**query) -> list[str] | None:
        given = ObjectQuery(**{"team_id": "a", "kind": "item", "parent": "c1", **query})
        found = list_objects(engine, given, now_us=NOW_US)
        return None if found is None else [stored.id for stored in found.objects]

    assert page() == ["i4", "i3", "i2", "i1", "i0"]
    assert page(limit=2, descending=False) == ["i0", "i1"]
    assert page(limit=2, after="i1", descending=False) == ["i2", "i3"]
    assert page(after="i1") == ["i0"]
    assert page(after="x") is None
    assert page(team_id="b") == []
    assert page(parent=None, limit=1) == ["x"]


def test_a_page_ends_where_it_is_large_and_says_that_more_follows(engine, monkeypatch) -> None:
    sizes = {"i0": 100, "i1": 900, "i2": 5_000, "i3": 100, "i4": 100}
    items = [make(name, kind="item", parent="c1", size=size) for name, size in sizes.items()]
    store_objects(engine, items, AMPLE)
    monkeypatch.setattr(stored_objects, "PAGE_BYTES", 1_000 + 2 * ROW_BYTES)
    pages: list[list[str]] = []
    after, more = None, True
    while more:
        query = ObjectQuery(team_id="a", kind="item", after=after, limit=3, descending=False)
        found = list_objects(engine, query, now_us=NOW_US)
        assert found is not None
        pages.append([stored.id for stored in found.objects])
        after, more = pages[-1][-1], found.more
    assert pages == [["i0", "i1"], ["i2"], ["i3", "i4"]]


def test_parts_of_what_was_deleted_meanwhile_are_not_stored(engine) -> None:
    item = make("i1", kind="item", parent="c1")
    assert not store_objects(engine, [item], AMPLE, renews="c1")
    assert store_objects(engine, [make("r1"), item], AMPLE, renews="c1")
    assert ids_of(engine) == {"r1"}
    assert bytes_of(engine) == {"a": make("r1").size}


def test_a_conversation_goes_with_its_items(engine) -> None:
    store_objects(engine, [make("c1", kind="conversation")], AMPLE)
    store_objects(engine, [make("i1", kind="item", parent="c1"), make("r1", parent="c1")], AMPLE)
    delete_object(engine, "a", "c1")
    assert ids_of(engine) == {"r1"}
    assert bytes_of(engine) == summed(engine)


def test_a_teams_oldest_objects_go_first(engine) -> None:
    room = StorageBounds(3 * (100 + ROW_BYTES), 10**9)
    store_objects(engine, [make("other", team="b")], room)
    for number in range(4):
        assert store_objects(engine, [make(f"r{number}")], room)
    assert ids_of(engine) == {"other", "r1", "r2", "r3"}
    assert store_objects(engine, [make("large", size=2 * 100 + ROW_BYTES)], room)
    assert ids_of(engine) == {"other", "r3", "large"}
    assert not store_objects(engine, [make("huge", size=10_000)], room)
    assert ids_of(engine) == {"other", "r3", "large"}, "nothing goes for what does not fit"
    assert bytes_of(engine) == summed(engine)


def test_no_team_pushes_another_out(engine) -> None:
    room = StorageBounds(10**9, 2 * (100 + ROW_BYTES))
    assert store_objects(engine, [make("r1", team="a")], room)
    assert store_objects(engine, [make("r1", team="b")], room)
    assert not store_objects(engine, [make("r1", team="c")], room)
    assert store_objects(engine, [make("r2", team="b")], room)
    assert ids_of(engine) == {"r1", "r2"}
    assert find_object(engine, "a", "r1", now_us=NOW_US) is not None


def test_what_is_being_made_is_not_pushed_out(engine) -> None:
    room = StorageBounds(2 * (100 + ROW_BYTES), 10**9)
    store_objects(engine, [make("running", status="in_progress")], room)
    store_objects(engine, [make("r1")], room)
    assert store_objects(engine, [make("r2")], room)
    assert ids_of(engine) == {"running", "r2"}


def test_cancelling_and_leases(engine) -> None:
    objects = [
        make("r1", status="queued"), make("r2", status="in_progress"),
        make("r3", status="completed"),
    ]  # fmt: skip
    store_objects(engine, objects, AMPLE)
    cancel_object(engine, "b", "r1", now_us=NOW_US)
    assert renew_leases(engine, ["r1", "r2"], lease_us=55) == set()
    cancel_object(engine, "a", "r1", now_us=NOW_US)
    cancel_object(engine, "a", "r3", now_us=NOW_US)
    assert renew_leases(engine, ["r1", "r2", "gone"], lease_us=66) == {"r1", "gone"}
    found = find_object(engine, "a", "r2", now_us=NOW_US)
    assert (found.lease_us, found.cancel_us) == (66, None)
    assert find_object(engine, "a", "r3", now_us=NOW_US).cancel_us is None


def test_what_expired_is_deleted_some_at_a_time(engine, monkeypatch) -> None:
    monkeypatch.setattr(stored_objects, "FORGOTTEN_AT_ONCE", 2)
    store_objects(engine, [make(f"r{n}", expires_us=NOW_US + n) for n in range(3)], AMPLE)
    store_objects(engine, [make("r9", team="b", expires_us=NOW_US)], AMPLE)
    assert forget_objects(engine, NOW_US + 1)
    assert not forget_objects(engine, NOW_US + 1)
    assert ids_of(engine) == {"r2"}
    assert bytes_of(engine) == {"a": 100 + ROW_BYTES, "b": 0}


def test_sums_stay_true_beside_one_another(engine) -> None:
    """Several workers store, push out, delete and forget at once; none waits for another's end."""
    room = StorageBounds(5 * (100 + ROW_BYTES), 9 * (100 + ROW_BYTES))
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(8):
                team, name = "ab"[(number + turn) % 2], f"r{number}{turn}"
                store_objects(engine, [make(name, team=team, expires_us=NOW_US + turn)], room)
                if turn % 3 == 0:
                    delete_object(engine, team, name)
                forget_objects(engine, NOW_US + 2)
        except BaseException as error:  # noqa: BLE001  (of a thread, told below)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    found = {team: size for team, size in bytes_of(engine).items() if size}
    assert found == summed(engine)
    assert max(found.values(), default=0) <= room.team_bytes
    assert sum(found.values()) <= room.total_bytes
