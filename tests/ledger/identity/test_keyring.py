"""Lookups: right answers, bounded caches, revocation by generation, a database that is away."""

import asyncio

import pytest
from sqlalchemy import event, select, update

from ledger.database import make_engine
from ledger.identity import keyring as module
from ledger.identity.keyring import KeyGeneration, KeyRing, LedgerUnavailable
from ledger.identity.keys import KeySpec, create_key, load_pepper, revoke_key
from ledger.orm import tables as orm

NOW_US = 1_780_000_000_000_000


class Books:
    """A database with keys, its run directory, and the writer's part: publishing."""

    def __init__(self, engine, tmp_path):
        self.engine, self.run, self.state = engine, tmp_path / "run", tmp_path / "state"
        self.generation = KeyGeneration(self.run)
        self.ring = KeyRing(engine, self.run, self.state)
        self.queries = 0
        event.listen(engine, "before_cursor_execute", self._count)

    def _count(self, *_):
        self.queries += 1

    def key(self, **changes):
        pepper = load_pepper(self.state)
        with self.engine.begin() as connection:
            spec = KeySpec(**{"name": "k", **changes})
            created = create_key(connection, spec, pepper=pepper, now_us=NOW_US)
        self.publish()
        return created

    def revoke(self, key, *, publish=True):
        with self.engine.begin() as connection:
            revoke_key(connection, key.key_id, now_us=NOW_US)
        if publish:
            self.publish()

    def publish(self):
        with self.engine.connect() as connection:
            self.generation.publish(connection.execute(select(orm.MetaRow.value)).scalar_one())

    async def ask(self, token, now_us=NOW_US):
        return self.ring.recall(token, now_us) or await self.ring.lookup(token, now_us)


@pytest.fixture
def books(engine, tmp_path):
    books = Books(engine, tmp_path)
    yield books
    books.ring.close()
    books.generation.close()


async def test_a_key_becomes_its_identity(books):
    key = books.key(team="search", org="acme", models=("chat",), tags=(("app", "web"),))
    identity = await books.ask(key.token)
    assert (identity.key_id, identity.team_id, identity.org_id) == (key.key_id, "search", "acme")
    assert identity.models == ("chat",)
    assert identity.tags == (("app", "web"),)
    assert identity.scopes == {"inference"}
    assert identity.isolation == "team"


@pytest.mark.parametrize("spoil", [lambda t: t[:-1] + "x", lambda t: t[:-1], lambda t: t + "0"])
async def test_a_wrong_secret_is_nobody_cached_or_not(books, spoil):
    key = books.key()
    assert await books.ask(spoil(key.token)) is None
    assert await books.ask(key.token) is not None
    assert await books.ask(spoil(key.token)) is None


async def test_known_and_unknown_keys_cost_one_query_each(books):
    key = books.key()
    await books.ask(key.token)
    await books.ask("gw_nobody_secret")
    before = books.queries
    for _ in range(20):
        assert await books.ask(key.token) is not None
        assert await books.ask("gw_nobody_secret") is None
    assert books.queries == before


async def test_caches_are_bounded(books, monkeypatch):
    monkeypatch.setattr(module, "CACHED_UNKNOWN", 10)
    monkeypatch.setattr(module, "CACHED_KEYS", 3)
    keys = [books.key() for _ in range(5)]
    for key in keys:
        assert await books.ask(key.token) is not None
    for number in range(50):
        await books.ask(f"gw_nobody{number}_secret")
    assert len(books.ring._known) == 3
    assert len(books.ring._unknown) == 10


async def test_a_token_that_was_found_valid_is_recalled_until_a_key_changes(books):
    key, other = books.key(), books.key()
    assert books.ring.recall(key.token, NOW_US) is None
    assert await books.ring.lookup(key.token, NOW_US) is not None
    assert books.ring.recall(key.token, NOW_US).key_id == key.key_id
    assert books.ring.recall(key.token + "0", NOW_US) is None
    assert books.ring.recall("\ud800", NOW_US) is None
    books.revoke(other)
    assert books.ring.recall(key.token, NOW_US) is None


async def test_what_is_recalled_is_bounded(books, monkeypatch):
    monkeypatch.setattr(module, "CACHED_TOKENS", 3)
    for _ in range(5):
        await books.ask(books.key().token)
    assert len(books.ring._checked) <= 3
    keys = [books.key() for _ in range(5)]
    for key in keys:
        await books.ask(key.token)
    assert len(books.ring._checked) == 3


async def test_revocation_is_seen_with_the_next_lookup_after_publication(books):
    key = books.key()
    assert await books.ask(key.token) is not None
    books.revoke(key, publish=False)
    assert await books.ask(key.token) is not None  # the control: without it nothing is seen
    books.publish()
    assert await books.ask(key.token) is None


async def test_a_key_that_did_not_exist_works_once_it_is_published(books):
    assert await books.ask("gw_0000000000000000_secret") is None
    key = books.key()
    assert await books.ask(key.token) is not None


async def test_a_lookup_under_way_never_brings_a_revoked_key_back(books, monkeypatch):
    key = books.key()
    fetch = books.ring._fetch

    def slow(key_id):
        entry = fetch(key_id)
        books.revoke(key)  # commits and publishes between the read and the answer
        return entry

    monkeypatch.setattr(books.ring, "_fetch", slow)
    await books.ask(key.token)
    monkeypatch.undo()
    assert await books.ask(key.token) is None


async def test_expiry_counts_for_cached_keys(books):
    key = books.key(expires_us=NOW_US + 10)
    assert await books.ask(key.token, NOW_US + 9) is not None
    assert await books.ask(key.token, NOW_US + 10) is None


async def test_residency_is_the_tighter_of_team_and_key(books):
    key = books.key(team="inner")
    with books.engine.begin() as connection:
        connection.execute(update(orm.TeamRow).values(residency="internal_only"))
    assert (await books.ask(key.token)).residency == "internal_only"


async def test_with_the_database_away_known_keys_go_on_and_others_are_told(books, tmp_path):
    key, other = books.key(), books.key()
    assert await books.ask(key.token) is not None
    books.ring._engine = make_engine(f"sqlite:///{tmp_path / 'missing' / 'ledger.db'}")
    assert await books.ask(key.token) is not None
    for token in (other.token, "gw_nobody_secret"):
        with pytest.raises(LedgerUnavailable):
            await books.ask(token)


async def test_a_storm_of_guesses_asks_a_few_at_a_time(books, monkeypatch):
    running, most = 0, 0
    fetch, in_thread = books.ring._fetch, asyncio.to_thread

    async def counted(function, *given, **named):
        nonlocal running, most
        if function != fetch:  # other loops of this process go on
            return await in_thread(function, *given, **named)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return function(*given)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    assert fetch("nobody") is None
    await asyncio.gather(*(books.ask(f"gw_x{number}_s") for number in range(50)))
    assert most <= module.LOOKUPS_AT_ONCE
