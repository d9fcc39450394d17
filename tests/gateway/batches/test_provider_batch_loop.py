"""Through the whole gateway: lines without an engine become one batch of the provider's."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from gateway.batches import provider_batch_loop
from gateway.batches.line_sender import SpillRefused
from gateway.batches.poll_intervals import PollIntervals
from gateway.batches.provider_batch_client import make_batch_providers
from gateway.batches.provider_batch_loop import ProviderBatchBuilder
from gateway.batches.provider_line_planner import ProviderLine
from gateway.clock import Clock
from ledger.batches.lines import LineClaim, LineStore, NewLine
from ledger.batches.outgoing import LineTerms, OutgoingStore, ProviderBatchState
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine
from ledger.journals.records import AttemptOpened
from ledger.verify.checks import verify

BATCH_IN, BATCH_OUT = 75_000, 300_000  # gpt-4o-mini's batch rates, pico-USD a token


def batching(found: dict[str, Any], _: dict[str, int]) -> None:
    """`alpha` takes batches; `beta` has no price for them."""
    found["providers"]["alpha"]["batch"] = True
    found["models"]["home"] = found["models"]["chat"]
    found["models"]["plain"] = {"targets": ["beta/m"]}
    at_home = {"name": "home", "match": {"models": ["home"]}, "residency": "internal_only"}
    found["models"]["kept"] = found["models"]["api"]
    stays = {"name": "stays", "match": {"models": ["kept"]}, "content": {"card": "keep_inside"}}
    found["policies"] = [at_home, stays, *found["policies"]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, running: Callable[..., Any]) -> Iterator[Any]:
    budgets = [{"scope": "team:search", "usd": "0.5", "hard": True}]
    home = tmp_path_factory.mktemp("outward")
    with running(home, adjust=batching, budgets=budgets) as this_running:
        this_running.alpha = this_running.providers["alpha"]
        this_running.alpha.jobs.begin_s = 0.1
        yield this_running


@pytest.fixture(scope="module")
def runner(stack: Any, with_runner: Callable[..., Any]) -> Iterator[Any]:
    providers = make_batch_providers(stack.settings, stack.runtime, {})
    with with_runner(stack, providers=providers) as this_with_runner:
        this_with_runner._outward.courier.waits = PollIntervals(first=0.2, most=0.4, settled=1.0)
        yield this_with_runner


@pytest.fixture
def client(stack: Any, runner: Any, make_client: Callable[..., Any]) -> Any:
    return make_client(stack.url, stack.token)


def requests(stack: Any, batch: dict[str, Any]) -> list[dict[str, Any]]:
    stack.booked()  # the writer may be behind
    return stack.rows("request_id LIKE :id", id=f"{batch['id']}-%")


def test_a_model_without_engines_goes_as_the_providers_batch(stack, client, line) -> None:
    lines = [line(f"c{n}", "api", max_tokens=3 + n) for n in range(5)]
    lines.append(line("bad", "api", messages=[7]))
    before = stack.alpha.jobs.made
    done = client.ended(client.make(lines))
    assert done["status"] == "completed"
    assert done["request_counts"]["total"] == 6
    assert stack.alpha.jobs.made == before + 1
    found = client.lines(done)
    assert [finding["custom_id"] for finding in found] == [f"c{n}" for n in range(5)]
    rows = {row["request_id"]: row for row in requests(stack, done)}
    assert len(rows) == 6
    for finding in found:
        row, usage = rows[finding["response"]["request_id"]], finding["response"]["body"]["usage"]
        assert row["output_tokens"] == usage["completion_tokens"]
        assert (row["tier"], row["basis"], row["provider"]) == ("batch", "reported", "alpha")
        assert row["cost_pusd"] == (
            BATCH_IN * usage["prompt_tokens"] + BATCH_OUT * usage["completion_tokens"]
        )
        assert json.loads(row["tags"])["batch"] == done["id"]
        assert row["compared_with"] == "openai/gpt-4o-mini"
    with stack.reader.connect() as connection:
        assert verify(connection).findings == ()


def test_what_no_providers_batch_takes_goes_the_ordinary_way(stack, client, line) -> None:
    """Another endpoint, and a provider that takes none."""
    made = stack.alpha.jobs.made
    said = {"custom_id": "r", "method": "POST", "url": "/v1/responses",
            "body": {"model": "api", "input": "hello", "max_output_tokens": 16}}  # fmt: skip
    done = client.ended(client.make([said], endpoint="/v1/responses"))
    (row,) = requests(stack, done)
    assert (row["tier"], row["provider"]) == (None, "alpha")
    done = client.ended(client.make([line("p", "plain")]))
    (row,) = requests(stack, done)
    assert (row["tier"], row["provider"]) == (None, "beta")
    assert stack.alpha.jobs.made == made


def test_what_engines_will_not_have_done_in_time_leaves(
    stack, client, line, runner, monkeypatch, patiently
) -> None:
    """Of a model with engines only when its time comes; what must stay at home stays."""
    monkeypatch.setattr("router.idle.SHARE", 0.0)  # no engine is ever idle enough
    monkeypatch.setattr(provider_batch_loop, "COUNT_S", 0.1)
    monkeypatch.setattr("gateway.batches.batch_spill_policy.WATCHED_S", 0.2)
    chat, home = (
        client.make([line("a", "chat"), line("b", "chat")]),
        client.make([line("h", "home")]),
    )
    patiently(lambda: client.batch(home)["status"] == "in_progress")
    patiently(lambda: "chat" in runner._outward._paces)
    assert requests(stack, chat) == [], "in its first hours a batch waits for a quiet night"
    monkeypatch.setattr(runner._outward, "hand_on_s", 24 * 3600.0)
    done = client.ended(chat)
    assert done["request_counts"]["completed"] == 2
    rows = requests(stack, done)
    assert {(row["tier"], row["spill_reason"]) for row in rows} == {("batch", "batch")}
    assert client.batch(home)["status"] == "in_progress"
    assert requests(stack, home) == []
    client.ask("POST", f"/batches/{home['id']}/cancel")
    client.ended(home)


def test_cancelling_reaches_the_provider(stack, client, line, patiently, monkeypatch) -> None:
    monkeypatch.setattr(stack.alpha.jobs, "begin_s", 600.0)
    made = client.make([line("a", "api"), line("b", "api")])
    patiently(lambda: all(row["settled_us"] is None for row in requests(stack, made)) and
              len(requests(stack, made)) == 2)  # fmt: skip
    there = patiently(lambda: [batch for batch in stack.alpha.jobs.batches.values()
                               if batch.status == "validating"])  # fmt: skip
    client.ask("POST", f"/batches/{made['id']}/cancel")
    patiently(lambda: there[0].status == "cancelling")
    there[0].status = "cancelled"
    done = client.ended(made)
    assert done["status"] == "cancelled"
    assert {each_line["error"]["code"] for each_line in client.lines(done, "error")} == {
        "batch_cancelled"
    }
    rows = requests(stack, made)
    assert {(row["status"], row["cost_pusd"]) for row in rows} == {("rejected", 0)}
    with stack.reader.connect() as connection:
        held = connection.execute(text("SELECT count(*) FROM holds WHERE state = 'held'"))
        assert held.scalar_one() == 0


def test_what_the_provider_did_not_do_goes_on(stack, client, line, patiently, monkeypatch) -> None:
    """It did one of three; the others are given away once more."""
    monkeypatch.setattr(stack.alpha.jobs, "most", 1)
    made = client.make([line(f"c{n}", "api") for n in range(3)])
    patiently(lambda: len([row for row in requests(stack, made) if row["status"] == "finished"]))
    monkeypatch.setattr(stack.alpha.jobs, "most", None)
    done = client.ended(made)
    assert done["request_counts"] == {"total": 3, "completed": 3, "failed": 0}
    rows = requests(stack, made)
    finished = [row for row in rows if row["status"] == "finished"]
    assert len(finished) == 3
    assert {row["cost_pusd"] for row in rows if row["status"] == "rejected"} == {0}


OWNER = "seat/1"


class PlanningWorker:
    """What a worker says of a line; `odd` is how it answers for some."""

    def __init__(self) -> None:
        self.odd: dict[int, object] = {}

    async def plan_at_provider(self, claim: LineClaim) -> ProviderLine | None:
        odd = self.odd.get(claim.number, "alpha")
        if odd is SpillRefused:
            raise SpillRefused
        if odd is None:
            return None
        name = claim.request_id
        opened = AttemptOpened(
            attempt_id=f"{name}.1", request_id=name, attempt_no=1, opened_us=1, key_id="k",
            user_id=None, team_id="t", org_id="o", kind="chat", stream=False, model="m",
            target=f"{odd}/m", backend="api", pool=None, engine=None, provider=str(odd),
            upstream_model="m", simulated=True, policy="p", policy_version="v", reason="cheapest",
            spill_reason=None, price_version=1, bound_pusd=5, prompt_tokens_estimate=1,
        )  # fmt: skip
        terms = LineTerms(n=1, most=1, told=True, prompt_bound=1)
        return ProviderLine(str(odd), "m", b"{}", opened, ("team:t",), terms)


class Desk:
    def __init__(self, url: str) -> None:
        self.engine = make_engine(url, keep_open=True)
        self.lines, self.batches = LineStore(self.engine, OWNER), BatchStore(self.engine)
        self.store, self.planning = OutgoingStore(self.engine, OWNER), PlanningWorker()
        numbers = iter(range(1, 99))
        self.collector = ProviderBatchBuilder(
            self.lines, self.store, self.batches, self.planning, OWNER, Clock(),
            lambda prefix: f"{prefix}{next(numbers)}",
        )  # fmt: skip

    def put(self, count: int) -> BatchRecord:
        far_us = Clock().wall_us() + 10**12
        record = BatchRecord("batch_1", "t", "k", "/v1/chat/completions", "24h", "f", 5, far_us)
        self.batches.create(record)
        self.lines.add("batch_1", [NewLine(n, f"c{n}", "m", b"{}") for n in range(1, count + 1)])
        self.batches.lease("batch_1", OWNER, now_us=0, until_us=1)
        self.batches.move("batch_1", OWNER, ("validating",), status="in_progress", total=count)
        return record


@pytest.fixture
def desk(ledger_url: str) -> Desk:
    return Desk(ledger_url)


async def test_each_provider_and_model_has_a_batch(desk: Desk, monkeypatch) -> None:
    monkeypatch.setattr(provider_batch_loop, "CHUNK", 2)
    record = desk.put(5)
    desk.planning.odd = {2: "beta"}
    assert await desk.collector.collect(record, "m", 9) == 5
    found = {target.provider: (target.lines, target.state) for target in desk.store.unfinished()}
    assert found == {"alpha": (4, ProviderBatchState.READY), "beta": (1, ProviderBatchState.READY)}
    assert desk.collector.collecting == set()
    assert await desk.collector.collect(record, "m", 9) == 0


async def test_no_more_than_wanted_and_a_full_one_is_closed(desk: Desk, monkeypatch) -> None:
    monkeypatch.setattr(provider_batch_loop, "CHUNK", 2)
    monkeypatch.setattr(provider_batch_loop, "LINES", 2)
    record = desk.put(9)
    assert await desk.collector.collect(record, "m", 5) == 5
    assert sorted(item.lines for item in desk.store.unfinished()) == [1, 2, 2]


async def test_what_no_batch_takes_stays_and_is_marked(desk: Desk) -> None:
    record = desk.put(3)
    desk.planning.odd = {1: SpillRefused, 3: None}
    assert await desk.collector.collect(record, "m", 9) == 1
    far_us = Clock().wall_us() + 10**9
    again = desk.lines.claim("m", 9, now_us=far_us - 5, until_us=far_us, ends_by_us=0)
    assert [item.number for item in again] == [1], "for the ordinary way at once"


async def test_another_hosts_batch_is_left_to_it(desk: Desk) -> None:
    record = desk.put(3)
    now_us = Clock().wall_us()
    assert desk.batches.lease("batch_1", "other/1", now_us=now_us, until_us=now_us + 10**9)
    assert await desk.collector.collect(record, "m", 9) == 0
    assert desk.store.unfinished() == []


def test_a_line_whose_content_may_not_leave_is_in_no_providers_batch(stack, client, line) -> None:
    """The control is the line beside it, which leaves."""
    card = [{"role": "user", "content": "STAYS-HERE 4111 1111 1111 1111"}]
    clean = [{"role": "user", "content": "may leave"}]
    made = client.make([line("k", "kept", messages=card), line("c", "kept", messages=clean)])
    done = client.ended(made)
    assert done["request_counts"] == {"total": 2, "completed": 1, "failed": 1}
    (failed,) = client.lines(done, "error")
    assert failed["custom_id"] == "k"
    assert failed["response"]["body"]["error"]["code"] == "content_may_not_leave"
    assert "STAYS-HERE" not in repr(stack.alpha.jobs.files) + repr(stack.entries("alpha"))
    (row,) = requests(stack, done)
    assert (row["provider"], row["content"]) == ("alpha", "nothing")
