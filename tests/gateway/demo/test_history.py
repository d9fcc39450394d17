"""The replayed month: consistent records out of the real router, labelled, repeatable."""

import random
from collections import Counter
from dataclasses import replace
from importlib.resources import files

import pytest
from sqlalchemy import insert

from backends.simulator.profiles import PROFILES
from gateway.config.settings import parse
from gateway.demo.demand import TEAMS
from gateway.demo.history import OUTAGE_S, SAMPLE_S, DemoScenario, replay
from gateway.demo.replay_records import DemoCaller
from gateway.host.stepfits import EngineFit, StepFitStore
from ledger.accounts import provisional_charge_pusd
from ledger.database import make_engine, migrate
from ledger.economics.cost import TokenBasis
from ledger.economics.step_cost import load_curve, sum_windows
from ledger.journals.records import AttemptOpened, AttemptSettled, RequestRefused
from ledger.orm import tables as orm
from ledger.prices.book import Price, PriceBook, cost_pusd
from ledger.prices.bundled import bundled_seed
from ledger.queries.reads import ANSWERED, DAY_US, Scope
from ledger.reports.survey import survey
from ledger.writing.repository import LedgerRepository

NOW_US = 1_795_132_800_000_000  # 2026-11-20 00:00 UTC
DAYS = 6
LONG_TOKENS = 8_000  # of a prompt; most are of a few hundred


@pytest.fixture(scope="module")
def settings():
    return parse(files("gateway.demo").joinpath("demo.yaml").read_text(), name="demo.yaml")


@pytest.fixture(scope="module")
def prices(settings):
    """The bundled prices that the demo's models are compared with."""
    wanted = {name for model in settings.models.values() for name in model.compare_with}
    drafts = [draft for draft in bundled_seed().drafts if draft.name in wanted]
    assert len(drafts) == len(wanted)
    return PriceBook(
        Price(version=i, name=d.name, book=d.book, effective_from_us=0, terms=d.terms)
        for i, d in enumerate(drafts, 1)
    )


@pytest.fixture(scope="module")
def scenario(settings, prices):
    callers = {team.name: DemoCaller("org", team.name, None, f"key-{team.name}") for team in TEAMS}
    return DemoScenario(settings, prices, callers, NOW_US, days=DAYS, requests=6000)


@pytest.fixture(scope="module")
def history(scenario):
    return replay(scenario, random.Random(11))


def attempts(history):
    opened = {r.attempt_id: r for r in history.records if isinstance(r, AttemptOpened)}
    return [(opened[r.attempt_id], r) for r in history.records if isinstance(r, AttemptSettled)]


def test_every_attempt_is_opened_then_settled_once(history):
    seen = Counter()
    for record in history.records:
        if isinstance(record, RequestRefused):
            continue
        if isinstance(record, AttemptSettled):
            assert seen[record.attempt_id] == 1
        seen[record.attempt_id] += 1
    assert set(seen.values()) == {2}
    assert len(seen) > 5000


def test_everything_says_that_it_was_replayed(history):
    assert all(o.simulated and ("replayed", "yes") in o.tags for o, _ in attempts(history))
    assert all(sample.simulated for sample in history.samples)


def test_times_lie_in_the_month_and_end_close_to_now(history):
    start_us = NOW_US - DAYS * 86_400_000_000
    for opened, settled in attempts(history):
        assert start_us <= opened.opened_us < NOW_US
        assert opened.opened_us <= settled.settled_us
        if settled.ttft_us is not None:
            assert 0 < settled.ttft_us <= settled.duration_us


def test_costs_follow_from_tokens_prices_and_the_rate(history, settings, prices):
    rate = round(settings.pools["llama-8b"].gpu.usd_per_hour * 10**12)
    for opened, settled in attempts(history):
        if opened.backend == "api":
            price = prices.version(opened.price_version)
            assert settled.cost_pusd == cost_pusd(settled.tokens, price)
        else:
            charge = provisional_charge_pusd(settled.engine_us, rate, gpus=1)
            assert settled.cost_pusd == min(charge, opened.bound_pusd)
        assert settled.cost_pusd <= opened.bound_pusd
        for compared in settled.compared:
            price = prices.version(compared.price_version)
            assert compared.cost_pusd == cost_pusd(settled.tokens, price)
        assert len(settled.compared) == 2


def test_it_spills_under_pressure_only_where_the_policy_allows(history):
    found = attempts(history)
    spilled = [o for o, _ in found if o.backend == "api"]
    assert spilled
    assert {o.spill_reason for o in spilled} <= {
        "ttft",
        "tpot",
        "kv_headroom",
        "bid_price",
        "unhealthy",
    }
    assert "contracts" not in {o.model for o in spilled}
    refused = [r for r in history.records if isinstance(r, RequestRefused)]
    assert {r.model for r in refused} <= {"contracts", "chat"}
    assert len(refused) < 0.05 * len(found)
    own = [s for o, s in found if o.backend == "own" and s.slo_met is not None]
    assert sum(bool(s.slo_met) for s in own) >= 0.95 * len(own)


def test_what_spills_spills_from_engines_that_are_well_used(history):
    """Busy in business hours, idle and keeping their work at night.

    By night only those prompts leave that an idle engine cannot read within 1.5 s, or reads for
    more than an API asks: how many of these are drawn is luck.
    """
    start_us = NOW_US - 2 * 86_400_000_000  # the last two days: Wednesday and Thursday

    def within(at_us, hours):
        return at_us >= start_us and at_us // 3_600_000_000 % 24 in hours

    for name, hours in (("day", range(9, 17)), ("night", (22, 23, 0, 1, 2, 3, 4))):
        found = [both for both in attempts(history) if within(both[0].opened_us, hours)]
        left = [settled.tokens.input for opened, settled in found if opened.backend == "api"]
        samples = [sample for sample in history.samples if within(sample.at_us - 1, hours)]
        used = sum(sample.busy_us for sample in samples) / (len(samples) * SAMPLE_S * 1e6)
        if name == "day":
            assert used > 0.7
            assert 0.05 < len(left) / len(found) < 0.35
        else:
            assert used < 0.2
            assert min(left, default=LONG_TOKENS) >= LONG_TOKENS


def test_clients_leave_and_are_settled_at_what_they_used(history):
    left = [s for _, s in attempts(history) if s.status == "client_gone"]
    assert left
    assert all(s.basis != "reported" and s.slo_met is None for s in left)


def test_an_engine_is_away_for_an_hour(history):
    down = [s for s in history.samples if s.health == "down"]
    assert len(down) == OUTAGE_S / SAMPLE_S
    assert len({s.engine for s in down}) == 1
    start_us, end_us = min(s.at_us for s in down), max(s.at_us for s in down)
    name = down[0].engine
    assert not [o for o, _ in attempts(history) if o.target == name and
                start_us <= o.opened_us <= end_us]  # fmt: skip


def test_samples_cover_the_month_for_both_engines(history):
    engines = Counter(s.engine for s in history.samples)
    assert set(engines) == {"pool:llama-8b/0", "pool:llama-8b/1"}
    assert set(engines.values()) == {DAYS * 144}
    outputs = sum(s.tokens.output for o, s in attempts(history) if o.backend == "own")
    last = {s.engine: s.output_tokens_total for s in history.samples}
    assert sum(last.values()) <= outputs
    assert sum(last.values()) > 0.95 * outputs


def test_the_same_seed_gives_the_same_history(scenario):
    brief = replace(scenario, days=2, requests=600)
    first, again, other = (replay(brief, random.Random(seed)).records for seed in (11, 11, 12))
    assert len(first) > 1000
    assert again == first
    assert other != first


@pytest.fixture(scope="module")
def books(history, settings, tmp_path_factory):
    """The replayed days in a ledger, with what the engines' telemetry leaves beside them."""
    ledger = f"sqlite:///{tmp_path_factory.mktemp('history') / 'ledger.db'}"
    migrate(ledger)
    engine = make_engine(ledger)
    LedgerRepository(engine, host="h").import_records(history.records, journal="j", at_us=NOW_US)
    (pool,) = settings.pools.values()
    known = PROFILES[pool.engine.model]
    row = {
        **StepFitStore(settings, {}).capacity(EngineFit(known.shape.step, None, known.source)),
        "at_us": NOW_US, "pool": "llama-8b",
        "kv_capacity_tokens": known.shape.kv_capacity_tokens,
    }  # fmt: skip
    contract = {
        "pool": "llama-8b", "gpu_type": pool.gpu.type, "gpus_per_replica": 1, "replicas": 2,
        "billing": "reserved", "pusd_per_hour": round(pool.gpu.usd_per_hour * 10**12),
        "source": "s", "ops_seconds_per_week": 0, "ops_pusd_per_hour": 0, "simulated": True,
        "recorded_us": NOW_US - DAYS * 86_400_000_000,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract])
        rows = [{**row, "engine": f"pool:llama-8b/{n}"} for n in range(pool.engine.replicas)]
        connection.execute(insert(orm.EngineCapacityRow), rows)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("basis", list(TokenBasis))
def test_the_break_even_page_models_the_overflow_that_there_was(history, books, basis):
    """At today's volume and engines, within a tenth; by step times alone it would miss by far."""
    scope = Scope(NOW_US - DAYS * 86_400_000_000, NOW_US)
    with books.connect() as connection:
        look = survey(connection, scope, bucket_us=DAY_US, basis=basis)
    pool = look.pools["llama-8b"]
    able, window = pool.capability, pool.capability.window_minutes
    load = load_curve(sum_windows(pool.load, window))
    lacked = ("ttft", "tpot", "kv_headroom", "bid_price")
    spilled = sum(
        (basis is TokenBasis.INPUT_OUTPUT) * (s.tokens.input + s.tokens.cached) + s.tokens.output
        for o, s in attempts(history)
        if o.backend == "api" and o.spill_reason in lacked and s.status in ANSWERED
    )
    assert spilled > 0.05 * load.total, "there is overflow to model"
    modelled = load.overflow(able.per_minute * window, volume=load.total)
    assert float(modelled) == pytest.approx(spilled, rel=0.1)
    alone = load.overflow(able.measured_per_minute * window, volume=load.total)
    assert float(alone) != pytest.approx(spilled, rel=0.1)
    assert able.capability.volume.tokens == look.standing.capability.volume.tokens
