"""The store as a worker reaches it: encrypted, bounded, and away without harm."""

import asyncio
import logging
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy.exc import OperationalError

from gateway.errors import RequestError
from gateway.request.store import object_store
from ledger.stored_objects import ChainError, ObjectQuery

WORD = "marzipan"


async def test_what_one_worker_stores_another_finds(open_store, document, now) -> None:
    here, there = open_store(), open_store()
    first = document("r1", kind="response", content={"text": WORD}, residency="internal_only")
    second = document("r2", kind="response", parent="r1")
    assert await here.store([first, second]) is None
    assert await there.find("a", "r1") == first
    assert await there.find("b", "r1") is None
    assert await there.find_many("a", ["r1", "r2", "r3", "\0"]) == {"r1": first, "r2": second}
    assert await there.find_chain("a", "r2", max_bytes=10**6) == [first, second]
    query = ObjectQuery(team_id="a", kind="response", descending=False)
    page = await there.list_page(query)
    assert page is not None
    assert (page.documents, page.more) == ([first, second], False)
    assert page.size > 0
    assert await there.delete("a", "r1")
    assert await here.find("a", "r1") is None
    with pytest.raises(ChainError):
        await here.find_chain("a", "r2", max_bytes=10**6)
    now[0] = second.expires_us
    assert await here.find("a", "r2") is None
    assert not await here.forget_expired()


async def test_no_file_holds_the_key_of_what_was_deleted(open_store, document, tmp_path) -> None:
    """SQLite overwrites the row in its file; its log had the key for as long as it was quiet."""
    store = open_store()
    stored = [document("r1", kind="response"), document("r2", kind="response")]
    assert await store.store(stored) is None

    def holders() -> set[str]:
        return {path.name for path in files for key in keys if key in path.read_bytes()}

    files = [path for path in tmp_path.rglob(f"{object_store.FILE}*") if path.is_file()]
    with closing(sqlite3.connect(files[0].parent / object_store.FILE)) as connection:
        keys = [row[0] for row in connection.execute("SELECT wrapped_key FROM stored_objects")]
    assert len(keys) == 2
    assert holders()
    for item in stored:
        assert await store.delete("a", item.id)
    assert holders() == set()


async def test_ids_that_nothing_can_have(open_store) -> None:
    store = open_store()
    for name in ("\0", "x" * 5000):
        assert await store.find("a", name) is None
        assert await store.find_many("a", [name]) == {}
        with pytest.raises(ChainError):
            await store.find_chain("a", name, max_bytes=10)


async def test_many_open_the_file_at_once(open_store, document) -> None:
    stores = [open_store() for _ in range(4)]
    stored = await asyncio.gather(
        *(
            store.store([document(f"i{number}")])
            for number, store in enumerate(stores)
            for _ in range(2)
        )
    )
    assert set(stored) == {None}


async def test_text_lies_nowhere_in_the_open_and_is_overwritten(
    open_store, document, tmp_path
) -> None:
    store = open_store()
    await store.store([document("i1", {"text": WORD})])
    path = tmp_path / object_store.FILE
    with sqlite3.connect(path) as connection:
        ((key, sealed),) = connection.execute("SELECT wrapped_key, sealed FROM stored_objects")
    await store.delete("a", "i1")
    await store.aclose()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert WORD.encode() not in left
    assert key not in left, "the key of a deleted object is still in the file"
    assert sealed[-40:] not in left


async def test_a_row_that_was_moved_or_loosened_does_not_open(
    open_store, document, tmp_path, caplog
) -> None:
    store = open_store()
    await store.store([document("i1", {"text": WORD}, residency="internal_only")])
    with sqlite3.connect(tmp_path / object_store.FILE) as connection:
        connection.execute("UPDATE stored_objects SET residency = 'any'")
    assert await store.find("a", "i1") is None
    assert "cannot be decrypted" in caplog.text
    with sqlite3.connect(tmp_path / object_store.FILE) as connection:
        connection.execute("UPDATE stored_objects SET residency = 'internal_only', team_id = 'b'")
    assert await store.find("b", "i1") is None


async def test_bounds(open_store, document) -> None:
    store = open_store(object_bytes=2000, team_bytes=4000)
    assert await store.store([document("i1", {"text": "x" * 3000})]) == "too_large"
    for number in range(5):
        assert await store.store([document(f"i{number}", {"text": "x" * 1000})]) is None
    assert set(await store.find_many("a", [f"i{n}" for n in range(5)])) == {"i3", "i4"} | {
        name for name in ("i2",) if await store.find("a", name)
    }
    tiny = open_store(total_bytes=1024)
    assert await tiny.store([document("i9", {"text": "x" * 2000}, team_id="b")]) == "full"


@pytest.mark.parametrize("error", [OperationalError("x", None, Exception()), OSError(28, "full")])
async def test_a_database_that_is_away_costs_no_answer(
    open_store, document, monkeypatch, caplog, error
) -> None:
    store = open_store()

    def fail(*_: object, **__: object) -> None:
        raise error

    for name in ("store_objects", "find_object", "forget_objects", "delete_object"):
        monkeypatch.setattr(object_store.rows, name, fail)
    with caplog.at_level(logging.WARNING):
        assert await store.store([document("i1", {"text": WORD})]) == "unavailable"
    assert WORD not in caplog.text
    for work in (store.find("a", "i1"), store.delete("a", "i1")):
        with pytest.raises(RequestError) as raised:
            await work
        assert (raised.value.row.status, raised.value.retry_after_s) == (503, 1.0)
    assert await store.forget_expired() is False


async def test_a_database_that_hangs_costs_no_answer(open_store, document, monkeypatch) -> None:
    store = open_store()
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(*_: object, **_named: object) -> bool:
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        return True

    monkeypatch.setattr(object_store, "STORE_WAIT_S", 0.01)
    monkeypatch.setattr(object_store.rows, "store_objects", hang)
    assert await store.store([document("i1")]) == "unavailable"
    gate.set()


async def test_texts_that_clients_carry(open_store) -> None:
    store = open_store()
    wrapped_key, sealed = await store.seal_text(b"sum", ("a", "compaction"))
    assert await open_store().open_text(wrapped_key, sealed, ("a", "compaction")) == b"sum"
    assert await store.open_text(wrapped_key, sealed, ("b", "compaction")) is None
    assert await store.open_text(b"", b"", ("a",)) is None


async def test_leases_and_cancelling(open_store, document, now) -> None:
    store = open_store()
    await store.store([document("r1", kind="response", status="queued")])
    assert await store.renew_leases(["r1"], lease_us=5) == set()
    await store.cancel("a", "r1")
    assert await store.renew_leases(["r1"], lease_us=6) == {"r1"}
    found = await store.find("a", "r1")
    assert found is not None
    assert (found.lease_us, found.cancel_us) == (6, now[0])
    assert store.expires_us == now[0] + 30 * 86_400 * 10**6
