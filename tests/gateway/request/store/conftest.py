"""A store of one worker in a directory of its own."""

import asyncio

import pytest

from gateway.config.schema_store import StoreSection
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.stored_document import StoredDocument

NOW_US = 1_700_000_000_000_000


@pytest.fixture
def now():
    """The wall clock's microseconds, as one number that a test may change."""
    return [NOW_US]


@pytest.fixture
def open_store(tmp_path, now):
    """`open_store(team_bytes=...)`: a worker's store on SQLite; all of a test share one file."""
    (tmp_path / "pepper").write_bytes(b"p" * 32)
    opened = []

    def make(url: str = f"sqlite:///{tmp_path / 'ledger.db'}", **section) -> ObjectStore:
        store = ObjectStore(url, tmp_path, StoreSection(**section), lambda: now[0])
        opened.append(store)
        return store

    yield make
    for store in opened:
        asyncio.run(store.aclose())


@pytest.fixture
def document():
    """`document(id, content, kind=..., ...)`: an object of the team `a`."""

    def make(name: str, content=None, **members) -> StoredDocument:
        given = {"team_id": "a", "kind": "item", "created_us": NOW_US,
                 "expires_us": NOW_US + 10**12, **members}  # fmt: skip
        return StoredDocument(id=name, content=content or {"id": name}, **given)

    return make
