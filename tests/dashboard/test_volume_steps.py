"""The staircase of a survey: consistent with the verdict, restated per month."""

import random
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from sqlalchemy import insert
from sqlalchemy import text as sql

from dashboard.data import reads
from dashboard.page.breakeven import crossing_lines
from dashboard.volume_steps import ChartReach, curves, ladder, marks
from ledger.database import make_engine, migrate
from ledger.economics.cost import TokenBasis, Volume
from ledger.journals.records import AttemptOpened, AttemptSettled, ComparedCost, TokenCounts
from ledger.orm import tables as orm
from ledger.queries.reads import DAY_US, Scope
from ledger.reports.fleet_economics import ComparatorKind
from ledger.reports.survey import survey
from ledger.writing.repository import LedgerRepository

S, HOUR = 10**6, 3_600 * 10**6
BOTH = TokenBasis.INPUT_OUTPUT
COLOURS = dict(zip(ComparatorKind, ("#111111", "#222222"), strict=True))


@pytest.fixture(scope="module")
def filled(books):
    return books(peak=60.0, days=8)


@pytest.fixture(scope="module")
def look(filled):
    engine = reads.open_readonly(filled.url)
    scope = Scope(filled.now_us - 7 * DAY_US, filled.now_us)
    with engine.connect() as connection:
        return survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)


def spilled(look) -> int:
    """What APIs answered because own engines lacked capacity, out of the survey's own cells."""
    return sum(
        cell.tokens
        for cell in look.cells
        if cell.is_answered and cell.spill_reason in ("ttft", "kv_headroom", "tpot", "bid_price")
    )


def test_the_model_explains_what_spilled_and_agrees_with_the_verdict(look) -> None:
    """At today's volume: API cost less own cost is, but for overflow modelled, the result."""
    steps = ladder(look, "llama-70b", ComparatorKind.SUBSTITUTE, spares=0)
    (verdict, _) = look.standing.verdicts
    api = steps.volume * Fraction(verdict.average.pusd_per_token)
    modelled = float(api - steps.configured_pusd) / 1e12
    assert modelled == pytest.approx(
        float(verdict.result_pusd) / 1e12, abs=0.05 * float(api) / 1e12
    )
    little = 0.002 * steps.volume  # between two windows of minutes
    assert float(steps.overflow) == pytest.approx(spilled(look), rel=0.1, abs=little)
    assert steps.scale == Fraction(720) / look.standing.hours
    assert steps.unit(1) == "1 GPU"
    assert steps.unit(3) == "3 GPUs"


SPILLED = (
    " FROM attempts a {join} WHERE a.backend = 'api' AND a.spill_reason IN"
    " ('ttft', 'kv_headroom', 'tpot', 'bid_price') AND a.opened_us >= :start"
)


@pytest.mark.parametrize("hours", [7 * 24, 1])
@pytest.mark.parametrize(
    ("bought_at", "select", "join"),
    [
        ("as bought", "a.cost_pusd", ""),
        *(
            (against, "c.cost_pusd", f"JOIN compared c USING (attempt_id) WHERE position = {place}")
            for place, against in enumerate(ComparatorKind)
        ),
    ],
)
def test_what_runs_costs_what_the_books_say(filled, bought_at, select, join, hours) -> None:
    """The bill, ops and what spilled for lack of capacity really cost; an hour's few spills too."""
    start_us = filled.now_us - hours * HOUR
    statement = f"SELECT count(*), sum({select}){SPILLED.format(join=join)}"
    statement = statement.replace("WHERE a.", "AND a.") if join else statement
    with reads.open_readonly(filled.url).connect() as connection:
        found = survey(connection, Scope(start_us, filled.now_us), bucket_us=HOUR, basis=BOTH)
        count, paid = connection.execute(sql(statement), {"start": start_us}).one()
    assert count
    steps = ladder(found, "llama-70b", bought_at, spares=0)
    (bill,) = steps.standing.bills
    assert abs(steps.configured_pusd - (bill.bill_pusd + bill.ops_pusd + paid)) < 1
    here, *_ = marks(steps, ChartReach.TODAY)
    assert here["usd"] == pytest.approx(float(steps.configured_pusd * steps.scale) / 1e12)
    if hours == 1:
        assert not steps.capability.spills_tell, "a single burst"


def test_the_price_of_overflow_is_not_that_of_what_was_served(look) -> None:
    """What spilled here has other lengths; at the average over what was served it is mispriced."""
    prices = {
        named.name: named.average.pusd_per_token for named in look.pools["llama-70b"].overflow
    }
    (substitute, _) = look.standing.verdicts
    assert list(prices) == ["as bought", *ComparatorKind]
    assert prices["as bought"] == pytest.approx(float(prices[ComparatorKind.SUBSTITUTE]), rel=0.01)
    assert prices[ComparatorKind.SUBSTITUTE] != substitute.average.pusd_per_token


@pytest.mark.parametrize("reach", list(ChartReach))
def test_curves_meet_where_they_say(look, reach: ChartReach) -> None:
    steps = ladder(look, "llama-70b", ComparatorKind.SUBSTITUTE, spares=0)
    records, palette = curves(steps, COLOURS, reach)
    assert set(palette) == {
        "API: anthropic/claude-haiku-4-5", "API: deepinfra/llama-3.3-70b", "own, 1 GPU",
        "own, best number of GPUs",
    }  # fmt: skip
    own = [row["usd"] for row in records if row["kind"] == "own, 1 GPU"]
    ideal = [row["usd"] for row in records if row["kind"] == "own, best number of GPUs"]
    assert all(best <= item for best, item in zip(ideal, own, strict=True))
    assert own == sorted(own)
    assert ideal[0] == 0
    here, *evens = marks(steps, reach)
    assert here["label"] == "we are here"
    for even in evens:
        basis = TokenBasis.INPUT_OUTPUT
        tokens = Fraction(even["volume"]) / steps.scale
        cost = steps.staircase.total_pusd(steps.gpus, Volume(tokens, basis)) * steps.scale
        assert float(cost) / 1e12 == pytest.approx(even["usd"], rel=1e-6)


def test_around_today_shows_where_we_are_and_capacity_all_of_it(look) -> None:
    steps = ladder(look, "llama-70b", ComparatorKind.SUBSTITUTE, spares=0)
    ends = {}
    for reach in ChartReach:
        records, _ = curves(steps, COLOURS, reach)
        ends[reach] = max(row["volume"] for row in records)
    assert float(steps.volume * steps.scale) <= ends[ChartReach.TODAY] / 2
    assert ends[ChartReach.CAPACITY] >= float(steps.capacity)


def test_spares_cost_and_add_nothing(look) -> None:
    lean = ladder(look, "llama-70b", ComparatorKind.SUBSTITUTE, spares=0)
    spared = ladder(look, "llama-70b", ComparatorKind.SUBSTITUTE, spares=1)
    (bill,) = look.standing.bills
    spare = 400_000_000_000 * bill.hours
    assert float(spared.configured_pusd - lean.configured_pusd) == pytest.approx(float(spare))
    assert spared.capacity == lean.capacity
    assert (lean.paid(1), spared.paid(1), spared.paid(0)) == (
        "1 GPU",
        "1 GPU + 1 spare",
        "no own GPU",
    )
    assert "own, 1 GPU + 1 spare" in curves(spared, COLOURS, ChartReach.TODAY)[1]
    fixed = lean.standing.fixed.total_pusd
    for meeting, other in zip(lean.meetings, spared.meetings, strict=True):
        needed = other.verdict.even.volume.tokens / meeting.verdict.even.volume.tokens
        assert float(needed) == pytest.approx(float((fixed + spare) / fixed))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """As `make run` leaves it: a chat and an embedding pool on one machine, six hours of traffic.

    The chat engine lost its last hour's bursts to an API; one request in ten spilled while it
    loaded. Embeddings are many, short and all kept.
    """
    url = f"sqlite:///{tmp_path_factory.mktemp('pair') / 'ledger.db'}"
    now_us = 1_790_000_000 * S - 1_790_000_000 * S % HOUR
    rng = random.Random(5)
    records = []
    for n in range(4_000):
        chat = n % 4 == 0
        at_us = now_us - 6 * HOUR + int(rng.random() ** 0.5 * 6 * HOUR)
        burst = chat and at_us % (600 * S) < 90 * S
        spill = "kv_headroom" if burst and rng.random() < 0.8 else None
        spill = "loading" if chat and spill is None and n % 40 == 0 else spill
        tokens = TokenCounts(
            input=rng.randrange(20, 120) if chat else rng.randrange(5, 60),
            output=rng.randrange(40, 200) if chat else 0,
        )
        pool = "tiny" if chat else "embed"
        price = (1_000_000, 5_000_000) if chat else (20_000, 0)
        cost = tokens.input * price[0] + tokens.output * price[1]
        opened = AttemptOpened(
            attempt_id=f"p{n}.1", request_id=f"p{n}", attempt_no=1, opened_us=at_us, key_id="k",
            user_id=None, team_id="search", org_id="acme", kind="chat" if chat else "embedding",
            stream=False, model=pool, target="api/x" if spill else f"pool:{pool}/0",
            backend="api" if spill else "own", pool=None if spill else pool,
            engine=None if spill else "0", provider="api" if spill else None,
            upstream_model="x", simulated=False, policy="default", policy_version="v1",
            reason="cheapest", spill_reason=spill, price_version=1 if spill else None,
            bound_pusd=10**12, prompt_tokens_estimate=tokens.input,
        )  # fmt: skip
        settled = AttemptSettled(
            attempt_id=f"p{n}.1", settled_us=at_us + S, status="finished", http_status=200,
            tokens=tokens, basis="reported", cost_pusd=cost if spill else 0, ttft_us=9_000,
            duration_us=S, engine_us=0 if spill else S // 10, finish_reason="stop", slo_met=True,
            compared=() if spill else (
                ComparedCost(f"{pool}/dear", 1, 3 * cost), ComparedCost(f"{pool}/cheap", 1, cost),
            ),
        )  # fmt: skip
        records += [opened, settled]
    migrate(url)
    engine = make_engine(url)
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=now_us)
    with engine.begin() as connection:
        for table, name in ((orm.GpuContractRow, "contract"), (orm.EngineCapacityRow, "capacity")):
            connection.execute(insert(table), [row(name, pool, now_us) for pool in POOLS])
    with engine.connect() as connection:
        scope = Scope(now_us - DAY_US, now_us)
        found = survey(connection, scope, bucket_us=HOUR, basis=TokenBasis.INPUT_OUTPUT)
    engine.dispose()
    return found


POOLS = ("tiny", "embed")


def row(table: str, pool: str, now_us: int) -> dict[str, object]:
    """Chat on this CPU: twenty sequences a step; embeddings: 10 ms and 0.1 ms a token."""
    if table == "contract":
        return {
            "pool": pool, "gpu_type": "CPU", "gpus_per_replica": 1, "replicas": 1,
            "billing": "reserved", "pusd_per_hour": 250 * 10**9, "source": "c", "since": None,
            "until": None, "ops_seconds_per_week": 0, "ops_pusd_per_hour": 0, "simulated": False,
            "recorded_us": now_us - 6 * HOUR, "machine": "box", "share_ppm": 500_000,
        }  # fmt: skip
    chat = pool == "tiny"
    return {
        "at_us": now_us, "pool": pool, "engine": f"pool:{pool}/0", "slo_ttft_ms": 1000.0,
        "slo_tpot_ms": 50.0, "kv_capacity_tokens": 8_000 if chat else None,
        "step_a_s": 0.01 if chat else 1e-6, "step_b_s": 0.002 if chat else 0.0, "step_c_s": 0.0,
        "step_d_s": 1e-4, "step_t0_s": 0.01, "source": "measured",
    }  # fmt: skip


def test_of_two_pools_each_is_drawn_with_its_own_figures(pair) -> None:
    chat, embed = (ladder(pair, pool, ComparatorKind.SUBSTITUTE, spares=0) for pool in POOLS)
    assert float(chat.overflow) == pytest.approx(spilled(pair), rel=0.1)
    assert spilled(pair) > 0.1 * chat.volume, "there is overflow to explain"
    assert embed.overflow == 0
    assert (chat.capability.decodes, embed.capability.decodes) == (True, False)
    asked = [cell for cell in pair.cells if cell.is_answered]
    loading = sum(cell.tokens for cell in asked if cell.spill_reason == "loading")
    assert loading > 0
    assert chat.volume + embed.volume == sum(cell.tokens for cell in asked) - loading
    whole = pair.standing.capability.volume.tokens
    assert whole < chat.capacity + embed.capacity, "an embedding engine has no room for chat"
    bills = sum(steps.standing.fixed.total_pusd for steps in (chat, embed))
    assert bills == pair.standing.fixed.total_pusd
    assert (chat.unit(1), chat.unit(2)) == ("1 engine", "2 engines")
    assert chat.share == "One engine is charged 50 % of a machine."
    _, palette = curves(chat, COLOURS, ChartReach.TODAY)
    assert {"own, 1 engine", "own, best number of engines"} <= set(palette)


@pytest.mark.parametrize("books_of", ["look", "pair"])
@pytest.mark.parametrize("against", ["as bought", *ComparatorKind])
def test_the_printed_break_even_is_where_the_drawn_lines_cross(books_of, against, request) -> None:
    found = request.getfixturevalue(books_of)
    met_once = 0
    for pool, drawn in found.pools.items():
        if against not in [named.name for named in drawn.overflow]:
            assert (pool, against) == ("embed", "as bought"), "none of its requests spilled"
            continue
        steps = ladder(found, pool, against, spares=0)
        for meeting in steps.meetings:
            (text, *_) = crossing_lines(steps, meeting)
            if meeting.asked is None:
                assert "are asked" not in text
                continue
            met_once += 1
            shown = figure(re.search(r"\*\*([0-9.]+[kMB]?)\*\* are asked", text)[1])
            for nudge, pays in ((0.994, False), (1.006, True)):
                volume = Volume(Fraction(shown * nudge) / steps.scale, TokenBasis.INPUT_OUTPUT)
                own = steps.staircase.total_pusd(steps.gpus, volume)
                bought = volume.tokens * Fraction(meeting.verdict.average.pusd_per_token)
                assert (own <= bought) is pays, (pool, text)
    assert met_once


def figure(text: str) -> float:
    return float(text.rstrip("kMB")) * {"k": 1e3, "M": 1e6, "B": 1e9}.get(text[-1], 1)


def test_both_pages_say_the_same_capacity(look) -> None:
    """One pool: the gauge of page 1 and the limit of page 2, over one period."""
    pool = "llama-70b"
    drawn, average = look.pools[pool], look.standing.verdicts[0].average
    steps = ladder(look, pool, "as bought", spares=0)
    assert steps.capacity == look.standing.capability.volume.tokens
    bought = replace(
        drawn.overflow[0], average=average, pusd=round(steps.overflow * average.pusd_per_token)
    )
    alike = replace(look, pools={pool: replace(drawn, overflow=(bought,))})
    steps = ladder(alike, pool, "as bought", spares=0)
    for meeting, verdict in zip(steps.meetings, look.standing.verdicts, strict=True):
        if meeting.asked is None:
            assert verdict.even.volume is None or not verdict.even.feasible
            continue
        room = steps.gpus * steps.staircase.capacity_per_minute
        kept = meeting.asked - steps.staircase.load.overflow(room, volume=meeting.asked)
        if verdict.against is ComparatorKind.SUBSTITUTE:  # overflow is bought at its average
            assert float(kept) == pytest.approx(float(verdict.even.volume.tokens), rel=1e-6)


def test_a_crossing_that_no_chart_shows_is_none(look) -> None:
    """Beyond every right edge: nearly all that is asked there would be bought."""
    pool = "llama-70b"
    drawn = look.pools[pool]
    little = replace(drawn.capability.capability, volume=Volume(1, TokenBasis.INPUT_OUTPUT))
    far = replace(
        drawn,
        load=tuple(tokens // 10 for tokens in drawn.load),
        capability=replace(drawn.capability, capability=little),
    )
    steps = ladder(replace(look, pools={pool: far}), pool, ComparatorKind.SUBSTITUTE, spares=0)
    assert steps.meetings[0].verdict.even.feasible
    assert [meeting.asked for meeting in steps.meetings] == [None, None]
    assert len(marks(steps, ChartReach.CAPACITY)) == 1
    records, _ = curves(steps, COLOURS, ChartReach.TODAY)
    assert max(record["volume"] for record in records) == float(2 * steps.volume * steps.scale)


def test_what_cannot_be_drawn_is_none(books) -> None:
    filled = books(rate_pusd=None, peak=3.0, days=2)
    engine = reads.open_readonly(filled.url)
    scope = Scope(filled.now_us - DAY_US, filled.now_us)
    with engine.connect() as connection:
        unrated = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.OUTPUT)
    assert ladder(unrated, "llama-70b", ComparatorKind.SUBSTITUTE, spares=0) is None
