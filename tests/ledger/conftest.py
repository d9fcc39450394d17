"""Records to apply, and a migrated database, for every test of the ledger."""

import copy
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from alembic import command
from sqlalchemy import Engine, insert, make_url

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "bench"))

from kept_books import KeptBooks
from lent_database import LentDatabase

from ledger import database
from ledger.accounts import postings_for_invoice, provisional_charge_pusd
from ledger.database import make_engine, migrate, open_readonly, sqlite_url
from ledger.fleet.hours import close_hours
from ledger.journals.records import (
    AttemptOpened,
    AttemptSettled,
    ComparedCost,
    Hold,
    RequestRefused,
    TokenCounts,
)
from ledger.orm import tables as orm
from ledger.posting_rows import posting_rows
from ledger.prices.rates import KINDS, Price, PriceTerms, TierRates, rates_from
from ledger.seals.sealer import Sealer
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.verify.seals import seals_hold
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository

NOON_US = 1_780_000_000_000_000


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "ledger.db"
    migrate(sqlite_url(path))
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server) -> str:
    name: str = postgres_server.create("migrated")
    migrate(postgres_server.url(name))
    return name


@pytest.fixture(scope="session")
def lent_database(postgres_server, migrated_postgres: str) -> Iterator[LentDatabase]:
    lent = LentDatabase(postgres_server, migrated_postgres)
    yield lent
    lent.end()


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Migrated for who asks for an engine, too; empty for who does not."""
    if "engine" in request.fixturenames:
        lent = request.getfixturevalue("lent_database")
        yield lent.lend()
        lent.take_back()
        return
    server = request.getfixturevalue("postgres_server")
    name = server.create()
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def downgrade(database_url: str) -> Callable[[str], None]:
    """To an earlier revision: what the migrations can, and no verb of the product does."""
    return lambda revision: command.downgrade(database._alembic(database_url), revision)


@pytest.fixture
def engine(database_url: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Migrated: a copy on SQLite, on PostgreSQL a database that others had before."""
    if database_url.startswith("sqlite"):
        copied = request.getfixturevalue("migrated_sqlite")
        shutil.copyfile(copied, make_url(database_url).database)
    engine = make_engine(database_url, keep_open=True)  # opening takes a tenth of all tests' time
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def kept_books(tmp_path_factory: pytest.TempPathFactory) -> KeptBooks:
    return KeptBooks(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="session")
def opened() -> Callable[..., AttemptOpened]:
    def make(number: int = 1, **changes: object) -> AttemptOpened:
        fields: dict[str, object] = {
            "attempt_id": f"r{number}.1",
            "request_id": f"r{number}",
            "attempt_no": 1,
            "opened_us": NOON_US + number,
            "key_id": "k1",
            "user_id": None,
            "team_id": "search",
            "org_id": "acme",
            "kind": "chat",
            "stream": True,
            "model": "chat-large",
            "target": "openai/gpt-4o-mini",
            "backend": "api",
            "pool": None,
            "engine": None,
            "provider": "openai",
            "upstream_model": "gpt-4o-mini",
            "simulated": False,
            "policy": "default",
            "policy_version": "v1",
            "reason": "cheapest",
            "spill_reason": None,
            "price_version": 1,
            "bound_pusd": 1_000,
            "prompt_tokens_estimate": 12,
            "holds": (Hold("team:search@month", 1_778_000_000, 1_000),),
            "tags": (("app", "web"),),
            "decision": b"\x80",
        }
        return AttemptOpened(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def settled() -> Callable[..., AttemptSettled]:
    def make(number: int = 1, **changes: object) -> AttemptSettled:
        fields: dict[str, object] = {
            "attempt_id": f"r{number}.1",
            "settled_us": NOON_US + 1_000_000 + number,
            "status": "finished",
            "http_status": 200,
            "tokens": TokenCounts(input=10, cached=2, output=5),
            "basis": "reported",
            "cost_pusd": 400,
            "ttft_us": 120_000,
            "duration_us": 900_000,
            "finish_reason": "stop",
        }
        return AttemptSettled(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def refused() -> Callable[..., RequestRefused]:
    def make(number: int = 1) -> RequestRefused:
        return RequestRefused(
            request_id=f"x{number}",
            refused_us=NOON_US + number,
            key_id="k1",
            team_id="search",
            org_id="acme",
            model="chat-large",
            policy="default",
            reason="budget",
            http_status=429,
            scope="team:search@month",
        )

    return make


CLOSED_HOUR = {
    "pool": "chat", "hour_us": 3_600_000_000, "contract_id": 1, "replicas": 1, "bill_pusd": 30,
    "used_pusd": 10, "idle_pusd": 20, "unavailable_pusd": 0, "busy_us": 1, "unavailable_us": 0,
    "closed_us": 9, "span_us": 3_600_000_000, "correction": 0,
}  # fmt: skip


@pytest.fixture
def books_of_each(engine, opened, settled, refused):
    """Settled, compared, refused, priced, a closed hour; one attempt is under way."""
    compared = (ComparedCost("openai/gpt-4o", 1, 7), ComparedCost("other/model", 1, 9))
    records = (
        opened(1), settled(1, compared=compared), opened(2, tags=(("b", "1"), ("a", "2"))),
        settled(2), opened(3), refused(9),
    )  # fmt: skip
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    LedgerRepository(engine, host="h").apply(items, (), at_us=5)
    with engine.begin() as connection:
        connection.execute(
            insert(orm.PriceVersionRow),
            [{"version": 1, "name": "a/b", "since_us": 0, "source": "", "recorded_us": 0,
              "price": {"name": "a/b", "terms": {"z": 1, "a": 2}}}],
        )  # fmt: skip
        connection.execute(insert(orm.GpuHourRow), [CLOSED_HOUR])
        team = {"pool": "chat", "hour_us": CLOSED_HOUR["hour_us"], "correction": 0, "used_pusd": 5,
                "provisional_pusd": 1, "engine_us": 1}  # fmt: skip
        connection.execute(
            insert(orm.GpuHourTeamRow), [team | {"team_id": "a"}, team | {"team_id": "b"}]
        )
        connection.execute(
            insert(orm.PostingRow),
            [{"entry_id": f"gpu:chat:{CLOSED_HOUR['hour_us']}", "line": line, "at_us": 8,
              "account": account, "amount_pusd": amount}
             for line, (account, amount) in enumerate((("x", 30), ("y", -30)))],
        )  # fmt: skip
    return engine


# ---------------------------------------------------------------- a random ledger


class RandomLedger:
    """Attempts of two days, at random, and what they must add up to, counted beside the books.

    Prices with tiers, thresholds, surcharges, fees and negotiated rates; pools reserved, owned
    and on demand at awkward rates; lost, late and unpriced attempts among them. `costs` are
    counted by this class alone, attempt by attempt, in millionths of a pico-USD.
    """

    START_US = 1_780_272_000_000_000  # 2026-06-01
    DAYS = 2
    TEAMS = ("search", "ads", "=cmd|' /C calc'!A1", "-1+1")

    def __init__(self, seed: int, attempts: int) -> None:
        self.random = random.Random(seed)
        self.attempts = attempts
        self.end_us = self.START_US + self.DAYS * DAY_US
        self.costs: Counter = Counter()  # (day, team, target, kind) -> millionths
        self.total = 0  # of all API attempts with a price
        self.written = Counter()  # rows, own_pusd, unpriced, lost
        sharp = {"input": 3_000_001, "output": 7_500_000, "cached": 300_007}
        self.prices = [
            Price(1, "openai/plain", "litellm", 0, PriceTerms(rates_from(sharp))),
            Price(
                2,
                "openai/tiers",
                "litellm",
                0,
                PriceTerms(
                    rates_from({**sharp, "reasoning": 9_000_000, "cache_write": 3_750_000}),
                    (
                        TierRates("flex", 0, rates_from({"input": 1_000_003, "output": 3_000_000})),
                        TierRates(
                            "standard", 2_000, rates_from({"input": 5_000_000, "output": 9_000_001})
                        ),
                    ),
                ),
            ),
            Price(
                3,
                "acme/surcharged",
                "litellm",
                0,
                PriceTerms(
                    rates_from({"input": 1_500_001, "output": 2_222_223}),
                    uplift_ppm=100_000,
                ),
            ),
            Price(
                4,
                "acme/fee",
                "litellm",
                0,
                PriceTerms(
                    rates_from({"input": 11, "output": 13, "audio_input": 17, "audio_output": 19}),
                    (TierRates("standard", 1_000, rates_from({"input": 22, "output": 26})),),
                    request_pusd=5_000_000_000,
                    inclusive=True,
                ),
            ),
            Price(
                5,
                "openai/plain",
                "ours",
                0,
                PriceTerms(rates_from({"input": 2_000_000, "output": 5_000_000})),
                rank=1,
            ),
        ]
        self.adjusted = {
            ("payable:provider:openai", "adjustments:openai"): -1_234_567,
            ("payable:gpu:reserved", "adjustments:gpu:reserved"): 7_000_000_000_001,
        }
        self.pools = {"reserved": 9_800_000_000_000, "owned": 1_234_567_890_123,
                      "on_demand": 3_333_333_333_333}  # fmt: skip

    def fill(self, engine: Engine) -> None:
        rows = [
            {"version": price.version, "name": price.name, "since_us": 0, "source": "",
             "price": msgspec.to_builtins(price), "recorded_us": 0}
            for price in self.prices
        ]  # fmt: skip
        contracts = [
            {"pool": pool, "gpu_type": "H200", "gpus_per_replica": 2, "replicas": 3,
             "billing": pool, "pusd_per_hour": rate, "since": date(2026, 6, 1),
             "source": "+contract", "recorded_us": self.START_US}
            for pool, rate in self.pools.items()
        ]  # fmt: skip
        samples = [
            {"at_us": self.START_US + n * 600_000_000, "pool": pool, "engine": f"{pool}/0",
             "health": self.random.choice(("healthy", "healthy", "down", "loading"))}
            for pool in self.pools for n in range(self.DAYS * 24 * 6)
        ]  # fmt: skip
        with engine.begin() as connection:
            connection.execute(insert(orm.PriceVersionRow), rows)
            connection.execute(insert(orm.GpuContractRow), contracts)
            connection.execute(insert(orm.EngineSampleRow), samples)
        books = LedgerRepository(engine, host="h")
        books.import_records(self._records(), journal="j", at_us=self.end_us)
        books.settle_lost("j", at_us=self.end_us)
        while close_hours(engine, at_us=self.end_us + HOUR_US):
            pass
        late = list(self._own(self.attempts // 100, first=10**9))  # corrects hours that are closed
        books.import_records(late, journal="late", at_us=self.end_us + HOUR_US)
        with engine.begin() as connection:
            for (owed_to, account), pusd in self.adjusted.items():
                lines = postings_for_invoice(account, owed_to, booked_pusd=0, invoiced_pusd=pusd)
                day_end = self.START_US + DAY_US - 1
                connection.execute(
                    insert(orm.PostingRow), posting_rows(f"invoice:{owed_to}", day_end, lines)
                )

    def _records(self) -> Iterator[AttemptOpened | AttemptSettled]:
        for number in range(self.attempts):
            if self.random.random() < 0.3:
                yield from self._own(1, first=number)
            else:
                yield from self._api(number)

    def _opened(self, number: int, **more: object) -> AttemptOpened:
        span = self.DAYS * DAY_US - 1_000_000_000
        fields: dict[str, object] = {
            "attempt_id": f"r{number}.1", "request_id": f"r{number}", "attempt_no": 1,
            "opened_us": self.START_US + self.random.randrange(span),
            "key_id": self.random.choice("kl"), "user_id": self.random.choice((None, "u")),
            "team_id": self.random.choice(self.TEAMS), "org_id": "acme", "kind": "chat",
            "stream": True, "model": "chat", "pool": None, "engine": None, "simulated": False,
            "policy": "p", "policy_version": "v", "reason": "cheapest", "spill_reason": None,
            "bound_pusd": 10**12, "prompt_tokens_estimate": 1, "price_version": None,
        }  # fmt: skip
        return AttemptOpened(**{**fields, **more})

    def _settled(self, opened: AttemptOpened, **more: object) -> AttemptSettled:
        fields: dict[str, object] = {
            "attempt_id": opened.attempt_id, "settled_us": opened.opened_us + 1_000_000,
            "status": "finished", "http_status": 200, "basis": "reported", "ttft_us": 1,
            "duration_us": 1_000_000,
        }  # fmt: skip
        return AttemptSettled(**{**fields, **more})

    def _own(self, count: int, *, first: int) -> Iterator[AttemptOpened | AttemptSettled]:
        for number in range(first, first + count):
            pool = self.random.choice(sorted(self.pools))
            where = {"backend": "own", "pool": pool, "target": f"pool:{pool}/0",
                     "provider": None, "upstream_model": "llama"}  # fmt: skip
            opened = self._opened(number, **where)
            busy_us = self.random.randrange(60_000_000)
            cost = provisional_charge_pusd(busy_us, self.pools[pool], 2)
            tokens = TokenCounts(
                input=self.random.randrange(4_000), output=self.random.randrange(500)
            )
            self.written["rows"] += 1
            self.written["own_pusd"] += cost
            yield opened
            yield self._settled(opened, engine_us=busy_us, cost_pusd=cost, tokens=tokens)

    def _api(self, number: int) -> Iterator[AttemptOpened | AttemptSettled]:
        roll, price = self.random.random(), self.random.choice(self.prices)
        provider, _, upstream = price.name.partition("/")
        where = {"backend": "api", "target": price.name, "provider": provider,
                 "upstream_model": upstream, "price_version": price.version}  # fmt: skip
        opened = self._opened(number, **where)
        self.written["rows"] += 1
        yield opened
        if roll < 0.01:
            self.written["lost"] += 1
            self.total += opened.bound_pusd
            day = opened.opened_us // DAY_US * DAY_US
            self.costs[day, opened.team_id, opened.target, "unsettled"] += opened.bound_pusd * 10**6
            return
        draw = self.random.randrange
        output = draw(800)
        reasoning = draw(output + 1) if price.version == 2 else 0
        tokens = TokenCounts(
            input=draw(3_000), cached=draw(900), cache_write=draw(100), output=output,
            reasoning=reasoning, audio_input=draw(50) if price.version == 4 else 0,
            audio_output=draw(output - reasoning + 1) if price.version == 4 else 0,
        )  # fmt: skip
        if roll < 0.02:
            self.written["unpriced"] += 1
            yield self._settled(opened, tokens=tokens, cost_pusd=None)
            return
        tier = self.random.choice((None, "default", "flex", "priority"))
        cost = self._cost(opened, tokens, price, tier)
        yield self._settled(opened, tokens=tokens, cost_pusd=cost, tier=tier)

    def _cost(
        self, opened: AttemptOpened, tokens: TokenCounts, price: Price, tier: str | None
    ) -> int:
        """One attempt by the provider's rules, written out once more."""
        prompt = tokens.input + tokens.cached + tokens.cache_write + tokens.audio_input
        terms, rates = price.terms, price.terms.rates
        for step in terms.schedules:
            reached = prompt > step.above_tokens or (
                terms.inclusive and prompt == step.above_tokens
            )
            if step.tier == "standard" and tier != "flex" and reached:
                rates = step.rates
            if step.tier == "flex" and tier == "flex":
                rates = step.rates
            if price.version == 4 and step.tier == "standard" and reached:
                rates = step.rates  # has no flex: the standard rates
        kinds = {kind: getattr(tokens, kind) for kind in KINDS}
        kinds["output"] -= tokens.reasoning + tokens.audio_output
        parts = {kind: count * getattr(rates, kind) for kind, count in kinds.items()}
        parts["requests"] = terms.request_pusd
        factor = 10**6 + terms.uplift_ppm
        day = opened.opened_us // DAY_US * DAY_US
        for kind, pusd in parts.items():
            if pusd:
                self.costs[day, opened.team_id, opened.target, kind] += pusd * factor
        cost = round(Fraction(sum(parts.values()) * factor, 10**6))  # half-even
        self.total += cost
        return cost


RANDOM_ATTEMPTS = 6_000


@pytest.fixture(scope="session")
def make_random_ledger() -> Callable[[int, int], RandomLedger]:
    return RandomLedger


@pytest.fixture(scope="session")
def random_sqlite(migrated_sqlite: Path, tmp_path_factory) -> Iterator[RandomLedger]:
    """Filled once, only to be read; `reader` is its read-only engine."""
    path = tmp_path_factory.mktemp("random") / "ledger.db"
    shutil.copyfile(migrated_sqlite, path)
    ledger = RandomLedger(seed=7, attempts=RANDOM_ATTEMPTS)
    writer = make_engine(sqlite_url(path))
    ledger.fill(writer)
    writer.dispose()
    ledger.url, ledger.reader = sqlite_url(path), open_readonly(sqlite_url(path))
    yield ledger
    ledger.reader.dispose()


@pytest.fixture(scope="session")
def random_postgres(
    random_sqlite: RandomLedger, postgres_server, migrated_postgres: str
) -> Iterator[RandomLedger]:
    """The same books in the other database, copied row by row: to fill it anew takes seconds."""
    ledger = copy.copy(random_sqlite)
    ledger.url = postgres_server.url(postgres_server.create("random_ledger", migrated_postgres))
    writer = make_engine(ledger.url)
    with random_sqlite.reader.connect() as source, writer.begin() as target:
        cursor = target.connection.cursor()
        for table in orm.LedgerBase.metadata.sorted_tables:
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            rows = source.exec_driver_sql(f"SELECT {names} FROM {table.name}")
            cursor.execute(f"TRUNCATE {table.name} CASCADE")
            with cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as into:
                for row in rows:
                    into.write_row([None if cell is None else str(cell) for cell in row])
    writer.dispose()
    ledger.reader = open_readonly(ledger.url)
    yield ledger
    ledger.reader.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def random_ledger(request: pytest.FixtureRequest) -> RandomLedger:
    return request.getfixturevalue(f"random_{request.param}")


@pytest.fixture(scope="session")
def write() -> Callable[..., None]:
    """Applies records as they come out of a journal."""

    def apply(engine: Engine, *records: object, journal: str = "j") -> None:
        items = [
            JournalItem(journal, 1, place, b"", record) for place, record in enumerate(records)
        ]
        LedgerRepository(engine, host="h").apply(items, (), at_us=5)

    return apply


@pytest.fixture(scope="session")
def seal_all() -> Callable[..., int]:
    """Seals until nothing is left; returns the rows."""

    def seal(engine: Engine, **options: int) -> int:
        sealer, rows = Sealer(engine, **options), 0
        while (found := sealer.seal(at_us=7)) > 0:
            rows += found
        return rows

    return seal


@pytest.fixture(scope="session")
def seal_findings() -> Callable[[Engine], list[tuple[str, str]]]:
    def found(engine: Engine) -> list[tuple[str, str]]:
        with engine.connect() as connection:
            return list(seals_hold(connection))

    return found


TRAFFIC_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
TRAFFIC_SCOPE = Scope(TRAFFIC_US, TRAFFIC_US + 2 * DAY_US)


class Pairs(list):
    """What was opened, with what it settled as."""

    def inside(self, scope=TRAFFIC_SCOPE):
        return [
            (first, last)
            for first, last in self
            if scope.start_us <= first.opened_us < scope.end_us
            and scope.team in (None, first.team_id)
        ]  # fmt: skip


@pytest.fixture
def traffic(engine, opened, settled):
    """150 attempts over three days, the last outside the scope, written as the gateway's are."""
    rng = random.Random(11)
    pairs = Pairs()
    for n in range(150):
        own = rng.random() < 0.6
        tokens = TokenCounts(
            input=rng.randrange(5_000), cached=rng.randrange(900), cache_write=rng.randrange(9),
            output=rng.randrange(1, 800),
        )  # fmt: skip
        first = opened(
            n,
            opened_us=TRAFFIC_US + rng.randrange(3 * DAY_US),
            team_id=rng.choice(("search", "support")),
            model=rng.choice(("chat-large", "code")),
            backend="own" if own else "api",
            pool="llama" if own else None,
            target="pool:llama/0" if own else "openai/gpt-4o-mini",
            spill_reason=None if own else rng.choice((None, "ttft", "kv_headroom", "loading")),
        )
        last = settled(
            n,
            status=rng.choice(("finished", "finished", "client_gone", "upstream_error")),
            tokens=tokens,
            cost_pusd=rng.choice((None, 0, rng.randrange(9 * 10**18))),
            slo_met=rng.choice((True, True, False, None)),
            engine_us=rng.randrange(10**6) if own else 0,
            compared=(
                ComparedCost("a/x", 1, 7 * tokens.output),
                ComparedCost("b/x", 1, tokens.output),
            ),
        )
        pairs.append((first, last))
    records = [record for pair in pairs for record in pair]
    records.append(opened(999, opened_us=TRAFFIC_US + 5, team_id="search"))  # still running
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=TRAFFIC_US)
    return pairs


@pytest.fixture
def adjust() -> Callable[..., None]:
    """Post a difference to a bill, at an instant of the day that was billed."""

    def post(engine: Engine, account: str, at_us: int, pusd: int) -> None:
        accounts = f"adjustments:{account}", f"payable:{account}"
        lines = postings_for_invoice(*accounts, booked_pusd=0, invoiced_pusd=pusd)
        with engine.begin() as connection:
            rows = posting_rows(f"invoice:{account}:{at_us}", at_us, lines)
            connection.execute(insert(orm.PostingRow), rows)

    return post
