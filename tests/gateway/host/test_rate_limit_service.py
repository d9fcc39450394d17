"""Two hosts, one database: a minute's limit is one limit, wherever requests come, whatever breaks.

Each host has its file, its desk and a worker's door; PostgreSQL is real. The control gives each
host the whole limit, as a host alone has it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, make_url

from gateway.clock import Clock
from gateway.config.schema_limits import RateLimitSection
from gateway.errors import RequestError
from gateway.host.rate_limit_service import RateLimitService
from gateway.request.limits.rate_limiter import RateLimiter, are_shared
from gateway.request.limits.rate_share_client import RateShareClient
from gateway.request.limits.rate_table import RATES_FILE, RateWindowTable
from ledger.database import make_engine, migrate
from ledger.identity.keys import Identity

LIMITS = [RateLimitSection(scope="key:*", requests_per_minute=60, tokens_per_minute=60_000)]
PATIENCE_S = 60.0
AWAY = "unavailable"
NOON_S = 1_780_000_000


@pytest.fixture(autouse=True)
def one_minute(monkeypatch) -> None:
    """However long a test takes."""
    monkeypatch.setattr(RateWindowTable, "second", lambda *_: NOON_S)


@pytest.fixture
def engine(postgres_url):
    migrate(postgres_url)
    made = make_engine(postgres_url)
    yield made
    made.dispose()


@pytest.fixture
def identity() -> Identity:
    return Identity("k", None, "t", "o", ("inference",), None, "any", (), "team")


class Site:
    """A host's door, and its desk."""

    def __init__(self, engine: Engine, folder: Path, *, alone: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        clock = Clock()
        rates = RateWindowTable(folder / RATES_FILE, None if alone else clock.now_s)
        self.door = RateLimiter(rates, LIMITS, clock, None if alone else RateShareClient(folder))
        self.open_desk = lambda: RateLimitService(engine, folder.name, folder, clock)
        self.desk: asyncio.Task | None = None
        if not alone:
            self.start()

    def start(self) -> None:
        self.desk = asyncio.create_task(self.open_desk().run())

    async def end(self) -> None:
        if self.desk is not None:
            self.desk.cancel()
            await asyncio.gather(self.desk, return_exceptions=True)

    async def let_in(self, identity: Identity, count: int, tokens: int = 1) -> int:
        """How many of so many that come at once."""
        return sum(await asyncio.gather(*(self._is_in(identity, tokens) for _ in range(count))))

    async def _is_in(self, identity: Identity, tokens: int) -> bool:
        """Comes again at a 503, as a client does: a busy machine's desk may need over 2 s."""
        for _ in range(10):
            with suppress(RequestError):
                use = await self.door.count(identity, "m", tokens)
                return use is not None and use.counted.over is None
        raise AssertionError("nobody could tell")

    async def told_at_last(self, identity: Identity) -> str:
        """What it is answered when somebody can tell again."""
        for _ in range(1000):
            if (told := await self.told(identity)) != AWAY:
                return told
            await asyncio.sleep(0.05)
        return AWAY

    async def told(self, identity: Identity) -> str:
        """What one request is answered."""
        try:
            use = await self.door.count(identity, "m", 1)
        except RequestError as error:
            return error.row.code or ""
        return "over" if use is None or use.counted.over else "in"


@asynccontextmanager
async def sites(engine: Engine, folder: Path, **how: bool) -> AsyncIterator[list[Site]]:
    made = [Site(engine, folder / name, **how) for name in ("one", "two")]
    try:
        yield made
    finally:
        for site in made:
            await site.end()
            site.door.close()


def test_two_hosts_let_in_just_the_limit_in_turn(engine, tmp_path, identity) -> None:
    async def play(**how: bool) -> int:
        async with sites(engine, tmp_path / str(len(how)), **how) as made:
            return sum([await site.let_in(identity, 1) for _ in range(70) for site in made])

    for name in "01":
        (tmp_path / name).mkdir()
    assert asyncio.run(play()) == 60
    assert asyncio.run(play(alone=True)) == 120, "the control: each by itself"


def test_a_crowd_at_both_at_once_is_let_in_up_to_the_limit(engine, tmp_path, identity) -> None:
    async def play() -> tuple[int, int]:
        async with sites(engine, tmp_path) as made:
            crowds = [site.let_in(identity, 100, tokens=100) for site in made]
            return sum(await asyncio.gather(*crowds)), await made[0].let_in(identity, 1)

    assert asyncio.run(play()) == (60, 0)


@pytest.mark.parametrize("first", [1, 10, 30, 59])
def test_what_one_host_has_left_the_other_lets_in(engine, tmp_path, identity, first) -> None:
    async def play() -> tuple[int, int, int]:
        async with sites(engine, tmp_path) as (item, two):
            return (
                sum([await item.let_in(identity, 1) for _ in range(first)]),
                sum([await two.let_in(identity, 1) for _ in range(61 - first)]),
                await item.let_in(identity, 1),
            )

    assert asyncio.run(play()) == (first, 60 - first, 0)


def test_tokens_are_one_limit_and_a_correction_makes_room_for_the_other(
    engine, tmp_path, identity
) -> None:
    async def play() -> None:
        async with sites(engine, tmp_path) as (item, two):
            use = await item.door.count(identity, "m", 50_000)
            assert use is not None
            assert use.counted.over is None
            assert await two.let_in(identity, 1, tokens=20_000) == 0
            use.tokens = 1_000
            use.end()
            for _ in range(100):  # for a second after a refusal nobody asks the other host
                if await two.let_in(identity, 1, tokens=20_000):
                    break
                await asyncio.sleep(0.1)
            assert await two.let_in(identity, 1, tokens=39_000) == 1
            assert await item.let_in(identity, 1, tokens=1) == 0

    asyncio.run(play())


def test_a_desk_that_is_started_again_goes_on_with_the_same_parts(
    engine, tmp_path, identity
) -> None:
    async def play() -> int:
        async with sites(engine, tmp_path) as (item, two):
            count = await item.let_in(identity, 20) + await two.let_in(identity, 20)
            await item.end()
            item.start()
            count += await item.told_at_last(identity) == "in"
            return count + await two.let_in(identity, 30) + await item.let_in(identity, 30)

    assert asyncio.run(play()) == 60


def test_cut_off_from_the_database_a_host_keeps_its_even_part_and_no_more(
    engine, tmp_path, identity, postgres_server
) -> None:
    name = make_url(str(engine.url)).database

    def admit(*, yes: bool) -> None:
        with psycopg.connect(postgres_server.admin, autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {yes}")
            if not yes:
                ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
                admin.execute(ended, (name,))

    async def until_nobody_can_tell(site: Site) -> int:
        """How many are let in until then."""
        count = 0
        while (told := await site.told(identity)) != AWAY:
            count += told == "in"
            await asyncio.sleep(0.01)
        return count

    async def play() -> tuple[int, int]:
        async with sites(engine, tmp_path) as (item, two), asyncio.timeout(PATIENCE_S):
            before = await item.let_in(identity, 1) + await two.let_in(identity, 1)
            admit(yes=False)
            cut = await until_nobody_can_tell(item) + await until_nobody_can_tell(two)
            admit(yes=True)
            told = await two.told_at_last(identity)
            return cut, before + cut + (told == "in") + await two.let_in(identity, 60)

    cut, in_all = asyncio.run(play())
    assert cut > 0, "known limits go on"
    assert in_all == 60


def test_only_a_database_of_many_hosts_shares() -> None:
    assert are_shared("postgresql+psycopg://gateway@db/breakeven")
    assert not are_shared("sqlite:///ledger.db")
