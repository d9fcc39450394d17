"""Books to look at: a seeded month of traffic, written to a ledger the way the gateway's is.

`fill` makes journal records and brings them into the books through the repository; contracts,
closed hours, capacity and samples are rows of their own writers. It returns the records, so that a
test can do its own arithmetic: `PRICES` are the test's prices, in pico-USD per token.
"""

import html
import math
import random
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
import uvicorn
import yaml
from fastapi import FastAPI, Response
from sqlalchemy import insert
from streamlit import config
from streamlit.testing.v1 import AppTest

sys.path.insert(0, str(Path(__file__).parent))

from scripted_desk import ScriptedDesk

from backends.event_server import EventServer
from backends.simulator.running import bind
from dashboard import admin_client, viewer_identity
from dashboard.viewer import Viewer
from deploy import once
from gateway.clock import Clock
from gateway.config.settings import parse
from gateway.control.access import guard_routes, list_operations
from gateway.control.admin.enginehost import EngineHost
from gateway.control.admin.executor import AdminExecutor
from gateway.control.admin.routes import admin_routes
from gateway.control.operations import ROUTES
from gateway.control.people import people_of
from gateway.errors import RequestError, body
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.prepare import prepare
from ledger.accounts import close_hour, provisional_charge_pusd
from ledger.database import make_engine, migrate
from ledger.fleet.hours import gpu_entry
from ledger.fleet.market import GpuOffer, MeasuredThroughput, record_market
from ledger.identity.keys import KeyRing
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.journals import records
from ledger.journals.records import AttemptOpened, AttemptSettled, ComparedCost, TokenCounts
from ledger.orm import tables as orm
from ledger.policies import policies_in_force
from ledger.posting_rows import posting_rows
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import PriceTerms, rates_from
from ledger.prices.stored import import_drafts
from ledger.writing.repository import LedgerRepository

S, MINUTE, HOUR, DAY = 10**6, 60 * 10**6, 3_600 * 10**6, 86_400 * 10**6
PRICES = {  # input, cached, output
    "anthropic/claude-haiku-4-5": (1_000_000, 100_000, 5_000_000),
    "deepinfra/llama-3.3-70b": (100_000, 100_000, 320_000),
    "openai/gpt-4o-mini": (150_000, 75_000, 600_000),
}
SUBSTITUTE, SAME_WEIGHTS, OTHER = PRICES
RATE_PUSD = 400_000_000_000
STEP_S = 0.055  # of each output token; with its prompt about 320 tokens a second
TEAMS = ("search", "support", "coding", "finance")
MODEL_END_US = int(datetime(2026, 11, 25, 20, tzinfo=UTC).timestamp()) * S  # a Wednesday evening
SPILL_REASONS = ("ttft", "kv_headroom", "ttft", "tpot")


def price(name: str, tokens: TokenCounts) -> int:
    per_input, per_cached, per_output = PRICES[name]
    return tokens.input * per_input + tokens.cached * per_cached + tokens.output * per_output


@dataclass
class Books:
    """What went into the books, beside where they are."""

    url: str
    now_us: int
    opened: list[AttemptOpened] = field(default_factory=list)
    settled: list[AttemptSettled] = field(default_factory=list)
    hours: list[dict] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[AttemptOpened, AttemptSettled]]:
        return list(zip(self.opened, self.settled, strict=True))

    def own_by_hour(self) -> dict[int, list[tuple[str, AttemptSettled]]]:
        """Teams and what own engines settled for them, by the hour in which it settled."""
        hours = defaultdict(list)
        for opened, settled in self.pairs:
            if opened.backend == "own":
                hours[settled.settled_us // HOUR * HOUR].append((opened.team_id, settled))
        return hours


class Traffic:
    """One pool of one GPU, a model that may spill, one that may not, and one that is API only."""

    def __init__(
        self, books: Books, seed: int, *, simulated: bool, teams: tuple[str, ...] = TEAMS
    ) -> None:
        self.books = books
        self.teams = teams
        self.rng = random.Random(seed)
        self.simulated, self.number = simulated, 0

    def hour(self, hour_us: int, requests: int, *, down: bool) -> None:
        room_us = 0 if down else HOUR * 9 // 10
        for _ in range(requests):
            model = self.rng.choices(("chat-large", "code-internal", "gpt-4o-mini"), (6, 3, 2))[0]
            tokens = TokenCounts(
                input=int(self.rng.lognormvariate(9.4, 0.5)),
                cached=self.rng.choice((0, 0, 5_000)),
                output=int(self.rng.lognormvariate(6.6, 0.6)) + 1,
            )
            engine_us = (tokens.input + tokens.output) * S // 320
            at_us = hour_us + self.rng.randrange(HOUR)
            stays_out = down and model == "code-internal"
            if stays_out or at_us >= self.books.now_us - 300 * S:
                continue
            spills = model == "chat-large" and self.number % 29 == 0  # some in every week
            own = model != "gpt-4o-mini" and engine_us <= room_us and not spills
            spill = None
            if not own and model != "gpt-4o-mini":
                spill = "loading" if down else self.rng.choice(SPILL_REASONS)
            room_us -= engine_us if own else 0
            self.attempt(at_us, model, tokens, engine_us if own else 0, spill)

    def burst(self) -> None:
        """The last minutes: most stay, some spill."""
        for n in range(24):
            tokens = TokenCounts(input=9_000 + n, output=400)
            at_us = self.books.now_us - (250 - 10 * n) * S
            spill = SPILL_REASONS[n % 4] if n % 3 == 0 else None
            self.attempt(at_us, "chat-large", tokens, 0 if spill else 2 * S, spill)

    def attempt(
        self, at_us: int, model: str, tokens: TokenCounts, engine_us: int, spill: str | None
    ) -> None:
        self.number += 1
        own = bool(engine_us)
        target = "pool:llama-70b/0" if own else OTHER if model == "gpt-4o-mini" else SUBSTITUTE
        predicted = int(self.rng.lognormvariate(12.6 if own else 13.2, 0.4))
        ttft = int(predicted * self.rng.lognormvariate(0, 0.25))
        opened = AttemptOpened(
            attempt_id=f"r{self.number}.1",
            request_id=f"r{self.number}",
            attempt_no=1,
            opened_us=at_us,
            key_id="k1",
            user_id=None,
            team_id=self.rng.choices(self.teams, (5, 4, 3, 1)[: len(self.teams)])[0],
            org_id="acme",
            kind="chat",
            stream=True,
            model=model,
            target=target,
            backend="own" if own else "api",
            pool="llama-70b" if own else None,
            engine="0" if own else None,
            provider=None if own else target.partition("/")[0],
            upstream_model=target.partition("/")[2],
            simulated=self.simulated,
            policy="default",
            policy_version="v1",
            reason="cheapest" if own or spill is None else "best_effort",
            spill_reason=spill,
            price_version=None if own else 1 + list(PRICES).index(target),
            bound_pusd=10**12,
            prompt_tokens_estimate=tokens.input,
            ttft_predicted_us=predicted,
        )
        self.books.opened.append(opened)
        self.books.settled.append(self.settle(opened, tokens, engine_us, ttft))

    def settle(
        self, opened: AttemptOpened, tokens: TokenCounts, engine_us: int, ttft_us: int
    ) -> AttemptSettled:
        own = opened.backend == "own"
        charge = provisional_charge_pusd(engine_us, RATE_PUSD, 1)
        unpriced = not own and (self.rng.random() < 0.002 or self.number % 97 == 0)
        return AttemptSettled(
            attempt_id=opened.attempt_id,
            settled_us=opened.opened_us + S,
            status="finished" if self.rng.random() > 0.02 else "client_gone",
            http_status=200,
            tokens=tokens,
            basis="reported",
            cost_pusd=charge if own else None if unpriced else price(opened.target, tokens),
            ttft_us=ttft_us,
            duration_us=ttft_us + tokens.output * 20_000,
            engine_us=engine_us,
            finish_reason="stop",
            slo_met=self.rng.random() > (0.01 if own else 0.06),
            compared=tuple(
                ComparedCost(name, 1, price(name, tokens)) for name in (SUBSTITUTE, SAME_WEIGHTS)
            )
            if opened.model != "gpt-4o-mini"
            else (),
        )


def load(at_us: int, start_us: int, peak: float) -> int:
    """Requests of an hour: nights are quiet, weekends too, and the weeks grow."""
    moment = datetime.fromtimestamp(at_us / 1e6, tz=UTC)
    day = 0.55 - 0.45 * math.cos((moment.hour - 2) * math.pi / 12)
    week = 0.45 if moment.weekday() >= 5 else 1.0
    return round(peak * day * week * (1 + 0.025 * (at_us - start_us) / DAY))


def fill(
    url: str,
    *,
    now_us: int,
    days: int = 30,
    peak: float = 60.0,
    rate_pusd: int | None = RATE_PUSD,
    until: date | None = None,
    simulated: bool = False,
    seed: int = 7,
    gpu_type: str = "L4",
    teams: tuple[str, ...] = TEAMS,
) -> Books:
    """`peak` is about the busiest hour's requests; without `until` the contract runs on.

    Busy hours and weekends are those of a fixed week that ends now: a day's books were nearly
    empty when the suite ran on a Saturday evening.
    """
    books = Books(url, now_us)
    traffic = Traffic(books, seed, simulated=simulated, teams=teams)
    start_us = now_us - now_us % HOUR - days * DAY + HOUR
    to_model_us = MODEL_END_US - (now_us - now_us % HOUR)
    last_us = now_us - now_us % HOUR if until is None else _midnight_us(until) + DAY - HOUR
    over: dict[int, bool] = {}
    for hour_us in range(start_us, last_us + 1, HOUR):
        model_us = hour_us + to_model_us
        down = (model_us // HOUR) % 167 == 5
        traffic.hour(hour_us, load(model_us, start_us + to_model_us, peak), down=down)
        if hour_us + HOUR <= now_us and rate_pusd is not None:
            over[hour_us] = down
    if until is None:
        traffic.burst()  # its first requests may still belong to an hour that is over
    settled_in = books.own_by_hour()
    books.hours = [
        _close(settled_in[hour_us], hour_us, down=down) for hour_us, down in over.items()
    ]
    migrate(once.put_ledger(url))
    engine = make_engine(url)
    repository = LedgerRepository(engine, host="here")
    records = sorted(
        [*books.opened, *books.settled, *_refusals(now_us)],
        key=lambda record: (getattr(record, "opened_us", None) or now_us, type(record).__name__),
    )
    repository.import_records(records, journal="history", at_us=now_us)
    with engine.begin() as connection:
        connection.execute(
            insert(orm.GpuContractRow),
            {
                "pool": "llama-70b", "gpu_type": gpu_type, "gpus_per_replica": 1, "replicas": 1,
                "billing": "reserved", "pusd_per_hour": rate_pusd, "source": "contract 2026-17",
                "since": None, "until": until, "ops_seconds_per_week": 1_800,
                "ops_pusd_per_hour": 20 * 10**12, "simulated": simulated, "recorded_us": start_us,
            },
        )  # fmt: skip
        if books.hours:
            teams = [team for hour in books.hours for team in hour.pop("teams")]
            postings = [row for each_hour in books.hours for row in each_hour.pop("postings")]
            connection.execute(insert(orm.PostingRow), postings)
            connection.execute(insert(orm.GpuHourRow), books.hours)
            if teams:
                connection.execute(insert(orm.GpuHourTeamRow), teams)
        connection.execute(insert(orm.EngineCapacityRow), _capacity(now_us))
        connection.execute(insert(orm.EngineSampleRow), _samples(now_us, simulated=simulated))
        connection.execute(insert(orm.JournalPositionRow), _position(now_us))
    _offered(engine, start_us)
    engine.dispose()
    return books


def _offered(engine, at_us: int) -> None:
    """Prices of the comparators, and GPUs that can be bought."""
    kinds = ("input", "cached", "output")
    rates = {name: dict(zip(kinds, row, strict=True)) for name, row in PRICES.items()}
    terms = {name: PriceTerms(rates_from(row)) for name, row in rates.items()}
    drafts = [PriceDraft(name, "list", term, source="a list") for name, term in terms.items()]
    import_drafts(engine, drafts, at_us=0)
    served = MeasuredThroughput("8B", 8.5, 1, 1_000.0, 2.0, 300.0, 40.0, "a bench of ours")
    rate = 6_980_000_000_000
    record_market(engine, [
        GpuOffer("H100", "NVIDIA", 80, 3_350 * 10**9, rate, rate, "a public list",
                 date(2026, 6, 1), (served,), "a data sheet"),
        GpuOffer("L4", "NVIDIA", 24, 300 * 10**9, RATE_PUSD, RATE_PUSD, "a public list",
                 date(2026, 6, 1), (), "a data sheet"),
        GpuOffer("L40S", "NVIDIA", 48, 864 * 10**9, None, None, None, None, (), "a data sheet"),
    ], at_us=at_us)  # fmt: skip


def _close(own: list[tuple[str, AttemptSettled]], hour_us: int, *, down: bool) -> dict:
    """The hourly close of the pool, by the product's own arithmetic."""
    busy: dict[str, int] = defaultdict(int)
    charged: dict[str, int] = defaultdict(int)
    for team_id, settled in own:
        busy[team_id] += settled.engine_us
        charged[team_id] += settled.cost_pusd or 0
    closed = close_hour(
        "llama-70b",
        RATE_PUSD,
        busy_us=busy,
        unavailable_us=HOUR if down else 0,
        provisional_pusd=charged,
        hour_us=HOUR,
    )
    teams = [
        {
            "pool": "llama-70b", "hour_us": hour_us, "team_id": team, "used_pusd": used,
            "provisional_pusd": charged[team], "engine_us": busy[team],
        }
        for team, used in closed.used_pusd.items()
    ]  # fmt: skip
    return {
        "pool": "llama-70b", "hour_us": hour_us, "contract_id": 1, "replicas": 1,
        "bill_pusd": closed.bill_pusd, "used_pusd": sum(closed.used_pusd.values()),
        "idle_pusd": closed.idle_pusd, "unavailable_pusd": closed.unavailable_pusd,
        "busy_us": sum(busy.values()), "unavailable_us": HOUR if down else 0,
        "closed_us": hour_us + HOUR + MINUTE, "teams": teams,
        "postings": posting_rows(gpu_entry("llama-70b", hour_us), hour_us, closed.postings),
    }  # fmt: skip


def _refusals(now_us: int) -> list[records.RequestRefused]:
    return [
        records.RequestRefused(
            f"x{n}", now_us - n * HOUR, "k1", "finance", "acme", "chat-large", "default",
            "budget" if n % 3 else "rate", 429, "team:finance" if n % 3 else None,
        )
        for n in range(1, 8)
    ]  # fmt: skip


def _capacity(now_us: int) -> dict:
    return {
        "at_us": now_us, "pool": "llama-70b", "engine": "pool:llama-70b/0",
        "kv_capacity_tokens": 291_424, "slo_ttft_ms": 1000.0, "slo_tpot_ms": 60.0,
        "step_a_s": 1e-6, "step_b_s": STEP_S, "step_c_s": 0.0, "step_d_s": 0.0, "step_t0_s": 0.0,
        "source": "measured",
    }  # fmt: skip


def _position(now_us: int) -> dict:
    return {
        "journal": "history", "worker": "0", "host": "here", "segment": 0, "offset": 1,
        "applied_us": now_us,
    }  # fmt: skip


def _samples(now_us: int, *, simulated: bool) -> list[dict]:
    """Two hours of one engine, every ten seconds."""
    rng = random.Random(3)
    rows = []
    prompt = output = preemptions = 0
    for n in range(720):
        wave = 0.5 + 0.4 * math.sin(n / 60)
        running = int(24 * wave + rng.random() * 6)
        prompt += int(9_000 * wave)
        output += int(500 * wave + rng.random() * 50)
        preemptions += rng.random() < 0.01
        rows.append(
            {
                "at_us": now_us - (720 - n) * 10 * S, "pool": "llama-70b",
                "engine": "pool:llama-70b/0", "health": "healthy", "running": running,
                "waiting": max(0, running - 25), "kv_usage_ppm": int(1e6 * min(0.97, wave)),
                "kv_promised_ppm": int(1e5 * wave), "prompt_tokens_total": prompt,
                "output_tokens_total": output, "preemptions_total": preemptions,
                "prefix_hit_ppm": 310_000, "busy_us": int(1e7 * wave),
                "step_feedback_ppm": 1_020_000 + 80 * n, "load_ppm": int(1e6 * wave),
                "bid_price_pusd_per_s": int(4e8 * max(0.0, wave - 0.6)), "age_us": 400_000,
                "simulated": simulated,
            }
        )  # fmt: skip
    return rows


def _midnight_us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * S


@pytest.fixture(scope="session")
def books(tmp_path_factory) -> Callable[..., Books]:
    """Fill a fresh SQLite ledger; every argument of `fill` can be changed."""

    def make(url: str | None = None, **changes: object) -> Books:
        fresh = f"sqlite:///{tmp_path_factory.mktemp('books') / 'ledger.db'}"
        return fill(url or fresh, **{"now_us": time.time_ns() // 1000, **changes})

    return make


@pytest.fixture(scope="session")
def month(tmp_path_factory) -> Books:
    """A month whose contract ended yesterday: nothing in it moves with the clock."""
    url = f"sqlite:///{tmp_path_factory.mktemp('month') / 'ledger.db'}"
    yesterday = datetime.fromtimestamp(time.time() - 86_400, tz=UTC).date()
    return fill(url, now_us=time.time_ns() // 1000, peak=6.0, until=yesterday)


@pytest.fixture(scope="session", autouse=True)
def on_this_machine() -> None:
    """As `serve` starts the dashboard. Packages are searched and charts judged once."""
    config.set_option("server.address", "127.0.0.1")
    once.remember("streamlit.components.v2.manifest_scanner", "scan_component_manifests")
    once.remember_what_passed("altair.utils.schemapi", "validate_jsonschema")


def show_page(name: str, url: str, period: str, team: str | None) -> None:
    """Runs inside Streamlit's test harness: one page, no sidebar."""
    import importlib  # noqa: PLC0415  (the harness runs this body as a script of its own)

    from dashboard import viewer_identity  # noqa: PLC0415  (as above)
    from dashboard.data import reads  # noqa: PLC0415  (as above)

    end_us, who = reads.rounded_now_us(reads.PERIODS[period]), viewer_identity.AT_THIS_MACHINE
    view = reads.DashboardView(url, period, team, end_us, who=lambda: who)
    importlib.import_module(f"dashboard.page.{name}").show(view)


@pytest.fixture(scope="module")
def remembered() -> Iterator[None]:
    """Answers about books that nobody changes are remembered for a file's tests."""
    yield
    st.cache_resource.clear()


@pytest.fixture
def page(request: pytest.FixtureRequest, remembered: None) -> Iterator[Callable[..., AppTest]]:
    """Run one page against a ledger; everything that it shows is in `text_of(test)`."""
    names, urls = request.fixturenames, set()
    is_plain = "month" in names and "monkeypatch" not in names
    if not is_plain:
        st.cache_resource.clear()

    def run(name: str, url: str, *, period: str = "30 d", team: str | None = None) -> AppTest:
        urls.add(url)
        args = {"name": name, "url": url, "period": period, "team": team}
        test = AppTest.from_function(show_page, kwargs=args, default_timeout=60).run()
        assert not test.exception, test.exception
        return test

    yield run
    if not is_plain or urls != {request.getfixturevalue("month").url}:
        st.cache_resource.clear()


@pytest.fixture
def text_of() -> Callable[[AppTest], str]:
    """All text of a page as one string, tags of HTML blocks and links to requests left out."""

    def read(test: AppTest) -> str:
        kinds = ("html", "markdown", "caption", "info", "warning", "subheader", "title")
        elements = (element for kind in kinds for element in test.get(kind))
        bodies = [html.unescape(getattr(element.proto, "body", "")) for element in elements]
        plain = (re.sub(r'<span class="be-rows-of">.*?</span>', " ", body) for body in bodies)
        return " ".join(re.sub(r"<[^>]+>", " ", body) for body in plain)

    return read


@pytest.fixture
def desk_of(monkeypatch) -> Callable[..., ScriptedDesk]:
    """`desk_of(name, role)`: what the Policies page asks instead of a gateway."""

    def make(name: str | None, role: DashboardRole = DashboardRole.ADMIN) -> ScriptedDesk:
        made = ScriptedDesk(Viewer(name, role))
        monkeypatch.setattr(admin_client, "desk", lambda _who: made)
        return made

    return make


ADA, FAY, JOE = "ada@example.com", "fay@example.com", "joe@example.com"
PEOPLE = f"""
[proxy]
secret_file = "proxy.secret"
[people."{ADA}"]
role = "admin"
[people."{FAY}"]
role = "finance"
[people."{JOE}"]
role = "viewer"
"""


def settings_of(state: Path, url: str) -> dict[str, Any]:
    access = state / "access.toml"
    access.write_text(PEOPLE)
    return {
        "state_dir": str(state),
        "ledger": {"url": url},
        "dashboard": {"access_file": str(access)},
        "models": {
            name: {"targets": targets, "compare_with": ["openai/gpt-4o-mini"]}
            for name, targets in {
                "chat-large": ["pool:llama-70b", "openai/gpt-4o-mini"],
                "code-internal": ["pool:llama-70b"],
                "gpt-4o-mini": ["openai/gpt-4o-mini"],
            }.items()
        },
        "pools": {
            "llama-70b": {
                "engine": {"kind": "simulated", "model": "h100-llama-3.1-8b-fp8", "replicas": 1},
                "gpu": {"type": "L4", "usd_per_hour": "0.40"},
            }
        },
        "providers": {"openai": {"base_url": "http://127.0.0.1:9/v1", "simulated": True}},
        "policies": [{"name": "plain", "slo": {"ttft_ms": 2000, "tpot_ms": 90}}],
    }


class ServedAdmin:
    """The admin API as a worker has it, and nothing else of one."""

    def __init__(self, state: Path, url: str) -> None:
        path = state / "breakeven.yaml"
        path.write_text(yaml.safe_dump(settings_of(state, url)))
        settings = parse(path.read_text(), name="test")
        runtime = prepare(settings, path).runtime
        self.state, self.url, self.engine = state, url, make_engine(runtime.ledger_url)
        self._board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
        app = FastAPI(openapi_url=None)
        desk = AdminExecutor(
            settings, lambda: make_engine(url), EngineHost(settings, runtime, self._board), Clock()
        )
        app.router.routes.extend(admin_routes(desk))
        app.add_exception_handler(RequestError, _told)
        known = {name: ROUTES[name] for name, _ in list_operations(app)}
        keys = KeyRing(self.engine, runtime.run_dir, state)
        guard_routes(app, keys, Clock(), known, people_of(settings, Clock()))
        listener = bind("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._server = EventServer(uvicorn.Config(app, access_log=False, log_level="critical"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]})
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._board.close()
        self.engine.dispose()

    @property
    def number(self) -> int:
        return 0 if (stored := policies_in_force(self.engine)) is None else stored.number


async def _told(_request: Any, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return Response(body(error), error.row.status, media_type="application/json")


@pytest.fixture(scope="module")
def serving(tmp_path_factory) -> Iterator[Callable[[str], ServedAdmin]]:
    """`serving(url)`: a gateway's admin API over these books, with people in its access file."""
    made: list[ServedAdmin] = []

    def serve(url: str) -> ServedAdmin:
        made.append(ServedAdmin(tmp_path_factory.mktemp("gateway"), url))
        return made[-1]

    yield serve
    for made_value in made:
        made_value.close()


@pytest.fixture(scope="module")
def gateway(books, serving):
    """A gateway over two days of small books, for tests that write through it."""
    return serving(books(days=2, peak=2.0).url)


@pytest.fixture
def page_as(gateway, page, monkeypatch) -> Callable[..., AppTest]:
    """A page beside the gateway, seen by a person whom the dashboard believes to have a role."""
    monkeypatch.setenv(GATEWAY, gateway.address)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(gateway.state / KEY_FILE))

    def look(name: str, person: str | None, role: DashboardRole) -> AppTest:
        monkeypatch.setattr(viewer_identity, "AT_THIS_MACHINE", Viewer(person, role))
        return page(name, gateway.url)

    return look
