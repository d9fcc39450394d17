"""Yesterday's ledger, replayed, comes to yesterday's decisions and dollars.

Two days of the demo's demand go through the policies once, as a gateway that was there would have
decided, and leave the records that a gateway writes. What the ledger has of the second day is read
back and played: all that is lost on the way is what the ledger does not keep. Engines begin empty
and with margins unlearned, so this holds where they are not full at midnight.
"""

import random
from importlib.resources import files
from typing import Any

import msgspec
import pytest

from gateway.config.settings import parse
from gateway.demo.demand import month
from gateway.whatif import policy_replay
from gateway.whatif.apis import draw_latencies
from gateway.whatif.ledger_traffic import read_traffic
from gateway.whatif.policy_replay import PolicyReplay, charged_pusd
from gateway.whatif.replay import Replay
from gateway.whatif.replay_fleet import ReplayFleet, engine_models
from gateway.whatif.report import decision_of
from gateway.whatif.traffic import Arrival
from gateway.whatif.whatif_run import run_whatif
from ledger.database import make_engine, migrate
from ledger.journals.records import AttemptOpened, AttemptSettled, TokenCounts
from ledger.prices.book import Price, PriceBook
from ledger.prices.bundled import bundled_seed
from ledger.spans import DAY_US, Scope
from ledger.writing.repository import LedgerRepository
from router.explain import pack_bounded

NOW_US = 1_795_132_800_000_000
REQUESTS = 400
SPEED = 24  # of the demo's two days: engines are as busy as with more requests, in less time
DAY = DAY_US // SPEED
AGREE = 0.03


@pytest.fixture(scope="module")
def settings():
    return parse(files("gateway.demo").joinpath("demo.yaml").read_text(), name="demo.yaml")


@pytest.fixture(scope="module")
def prices(settings) -> PriceBook:
    wanted = {name for model in settings.models.values() for name in model.compare_with}
    drafts = [draft for draft in bundled_seed().drafts if draft.name in wanted]
    return PriceBook(
        Price(version=i, name=d.name, book=d.book, effective_from_us=0, terms=d.terms)
        for i, d in enumerate(drafts, 1)
    )


@pytest.fixture(scope="module")
def lived(settings, prices, tmp_path_factory) -> dict[str, Any]:
    """Where each request of the second day went, what that cost, and the books of both."""
    start_s = NOW_US / 1e6 - 2 * 86_400
    found = month(random.Random(3), end_s=NOW_US / 1e6, days=2, requests=REQUESTS)
    arrivals = [
        Arrival((item.at_s - start_s) / SPEED, item.prompt_tokens, item.output_tokens,
                item.team.model, item.team.name, item.max_tokens)
        for item in found
    ]  # fmt: skip
    house = ReplayFleet(
        settings, prices, engine_models(settings, ["llama-8b"], {}, []), {}, NOW_US - 2 * DAY
    )
    planned, blobs = PolicyReplay(house, settings, arrivals[-1].at_s), {}

    def decide(request, policy, offered):
        decision = plain(request, policy, offered)
        asked = request, policy, decision
        blobs[id(request)] = pack_bounded(800, msgspec.msgpack.encode, asked)
        return decision

    plain = policy_replay.decide
    policy_replay.decide = decide
    try:
        apis = {
            name: draw_latencies(len(arrivals), known.latency, 9)
            for name, known in house.seen.items()
        }
        outcomes = Replay(planned.seats, {}, arrivals, (), apis=apis).run(planned)
    finally:
        policy_replay.decide = plain
    url = f"sqlite:///{tmp_path_factory.mktemp('books') / 'ledger.db'}"
    migrate(url)
    engine = make_engine(url)
    records = [
        record
        for number, outcome in enumerate(outcomes)
        if decision_of(outcome).target
        for record in _records(number, outcome, blobs)
    ]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOW_US)
    yield {"engine": engine, "outcomes": outcomes, "house": house}
    engine.dispose()


def _records(number: int, outcome, blobs) -> tuple[AttemptOpened, AttemptSettled]:
    told, arrival = decision_of(outcome), outcome.arrival
    own, at_us = outcome.engine is not None, NOW_US - 2 * DAY + int(1e6 * arrival.at_s)
    opened = AttemptOpened(
        attempt_id=f"r{number}.1", request_id=f"r{number}", attempt_no=1, opened_us=at_us,
        key_id="k", user_id=None, team_id=arrival.tenant, org_id="acme", kind="chat", stream=True,
        model=arrival.model, target=told.target, backend="own" if own else "api",
        pool="llama-8b" if own else None, engine=None, provider=None, upstream_model="m",
        simulated=True, policy=told.rule, policy_version="v", reason=told.reason.value,
        spill_reason=None, price_version=None, bound_pusd=10**12,
        prompt_tokens_estimate=arrival.prompt_tokens, decision=blobs[id(told.request)],
    )  # fmt: skip
    ttft_us = round(1e6 * outcome.ttft_s)
    duration = ttft_us + round(1e6 * outcome.tpot_s * max(0, arrival.output_tokens - 1))
    settled = AttemptSettled(
        attempt_id=f"r{number}.1", settled_us=at_us + duration, status="finished", http_status=200,
        tokens=TokenCounts(input=arrival.prompt_tokens, output=arrival.output_tokens),
        basis="reported", cost_pusd=charged_pusd(outcome, told), ttft_us=ttft_us,
        duration_us=duration, engine_us=0, finish_reason="stop", slo_met=True,
    )  # fmt: skip
    return opened, settled


def _places(outcomes) -> list[str]:
    return [
        "own" if outcome.engine is not None else decision_of(outcome).target for outcome in outcomes
    ]


def play(lived, settings, monkeypatch, **without) -> tuple[float, float, float, float]:
    """(share decided alike, dollars then, dollars now, most that was refused of a class)."""
    span = Scope(NOW_US - DAY, NOW_US)
    with lived["engine"].connect() as connection:
        traffic = read_traffic(connection, span)
    house = lived["house"]
    there = ReplayFleet(settings, house.prices, house.engines, traffic.seen, traffic.start_us)
    there.lengths = () if "lengths" in without else traffic.lengths
    arrivals = [arrival._replace(**without.get("members", {})) for arrival in traffic.arrivals]
    seen: list[Any] = []
    run = Replay.run
    monkeypatch.setattr(Replay, "run", lambda *given: seen.append(run(*given)) or seen[-1])
    (result,) = run_whatif(there, [("again", settings)], arrivals, 1, lambda *_: None)["results"]
    of_day = [
        outcome
        for outcome in lived["outcomes"]
        if outcome.arrival.at_s >= DAY / 1e6 and decision_of(outcome).target
    ]
    then, now = _places(of_day), _places(seen[0])
    assert len(then) == len(now) > 150
    spent = sum(
        charged_pusd(outcome, decision_of(outcome)) or 0
        for outcome in of_day
        if outcome.engine is None
    )
    alike = sum(a == b for a, b in zip(then, now, strict=True)) / len(then)
    refused = max(each["refused"] / each["requests"] for each in result["classes"])
    return alike, spent / 1e12, result["dollars"]["api_usd"], refused


def test_yesterday_comes_to_the_same(lived, settings, monkeypatch) -> None:
    alike, then, now, refused = play(lived, settings, monkeypatch)
    assert alike >= 1.0 - AGREE
    assert now == pytest.approx(then, rel=AGREE)
    assert refused <= 0.01


def test_without_what_the_ledger_keeps_of_requests_it_would_not(
    lived, settings, monkeypatch
) -> None:
    """The control: red before, as neither limits of answers nor lengths were read from it."""
    members = {"max_tokens": None, "estimate": 0, "bound": 0}
    alike, then, now, refused = play(lived, settings, monkeypatch, members=members, lengths=True)
    assert alike < 1.0 - AGREE or now != pytest.approx(then, rel=AGREE) or refused > 0.01
