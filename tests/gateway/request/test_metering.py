"""From events to rows: bases, costs, SLO verdicts, and what is learned or not learned."""

import math
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from gateway.fleet.comparators import Comparator
from gateway.fleet.gap_counts import GAP_BUCKETS
from gateway.fleet.prefix_index import ENDS
from gateway.fleet.provider_caches import CacheForecast, ProviderCaches
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.metering import UsageMeter
from gateway.request.outcome_evidence import REFUSED
from gateway.telemetry.metrics.requests import RequestMetrics
from ledger.journals.journal import JournalFull
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, TokenRates
from router.cached_share import CachedShare
from router.prompts import PromptPrefix
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.target_output import TargetOutput
from router.types import OutputMoments, Slo, StepModel

STEP = StepModel(a_s=0.004, b_s=0.001, c_s=1e-8, d_s=1e-4, t0_s=0.05)
USAGE = {"prompt_tokens": 100, "completion_tokens": 11, "total_tokens": 111}


class Journal:
    def __init__(self, *, full: bool = False) -> None:
        self.records: list = []
        self.full = full

    def append(self, record) -> None:
        if self.full:
            raise JournalFull("full")
        self.records.append(record)

    def append_ending(self, record, written) -> None:
        self.append(record)
        written()

    async def append_durable(self, record, written) -> None:
        self.append_ending(record, written)


class Recorder:
    """Stands for whatever only listens."""

    def __init__(self) -> None:
        self.calls: list = []

    def __getattr__(self, name: str):
        return lambda *args, **options: self.calls.append((name, args, options))


@pytest.fixture
def price() -> Price:
    rates = TokenRates(
        input=150_000, cached=75_000, cache_write=150_000, cache_write_1h=150_000,
        output=600_000, reasoning=600_000, audio_input=0, audio_output=0,
    )  # fmt: skip
    return Price(
        version=7, name="openai/x", book="test", effective_from_us=0, terms=PriceTerms(rates)
    )


@pytest.fixture
def parts():
    return SimpleNamespace(
        journal=Journal(), admission=Recorder(), experience=Recorder(), lengths=Recorder(),
        ratio=Recorder(), clock=SimpleNamespace(now_s=lambda: 12.0, wall_us=lambda: 5),
    )  # fmt: skip


@pytest.fixture
def metering(parts) -> UsageMeter:
    parts.registry = CollectorRegistry()
    metrics = parts.metrics = RequestMetrics(parts.registry, models=["m"], targets=["alpha/m"])
    learned = SimpleNamespace(
        ratio=parts.ratio,
        outputs=parts.lengths,
        target_output=TargetOutput(),
        cached=None,
        exchange=None,
    )
    return UsageMeter(
        parts.journal, parts.admission, metrics, parts.experience, learned, parts.clock
    )


@pytest.fixture
def attempt(price: Price) -> Attempt:
    """An API's attempt, streamed, dispatched at 10 s; its first token came at 10.5 s."""
    target = SimpleNamespace(
        name="alpha/m", own=False, row=0, rate_pusd_per_hour=None, goes_on=False,
        features=frozenset(), on_disconnect="unknown",
    )  # fmt: skip
    frozen = SimpleNamespace(
        prompt=None,
        target=target, price=price, open_end=None, allowance_tokens=0, unread=(),
        asked_tier="", unlisted_tier="", limits=None,
        prompt_bound=lambda request: request.prompt_tokens_bound,
        candidate=SimpleNamespace(engine=None, bound_pusd=0, output_cap=None),
    )  # fmt: skip
    plan = SimpleNamespace(
        request_id="r", model="m", comparators=(Comparator(price),), learning_key=("m", "t"),
        request=SimpleNamespace(
            kind=RequestKind.CHAT, prompt_tokens=90, prompt_tokens_bound=99, n=1, max_tokens=20,
            output=OutputMoments(0, 15.0, 225.0, 15.0), has_sound=False, text_prompt=True,
            without_pictures=False, service_tier="", features=frozenset(),
            beginning=PromptPrefix(),
        ),
        asked=SimpleNamespace(
            prompt_bytes=400, stream=True, kind=RequestKind.CHAT, features=frozenset(), members={},
            form=None, sound_tokens=0, content=None,
        ),
        policy=SimpleNamespace(name="p", slo=Slo(ttft_ms=1000, tpot_ms=100)),
        identity=SimpleNamespace(key_id="k", team_id="t", org_id="o"), decision_blob=b"",
    )  # fmt: skip
    step = SimpleNamespace(
        frozen=frozen, verdict=SimpleNamespace(reason=Reason.ONLY, ttft_ms=400.0, tpot_ms=math.inf)
    )
    made = Attempt(plan, step, 1, 10.0, holds=("held",))
    made.first_token_s, made.last_token_s, made.events = 10.5, 11.5, 9
    return made


def test_the_hold_of_an_answer_that_was_given_up_is_released_to_its_bound_only(
    metering, parts, attempt
) -> None:
    attempt.plan.asked.stream, attempt.events = False, 0
    metering.settle_later(attempt, AttemptOutcome("client_gone", 499))
    (record,) = parts.journal.records
    assert (record.basis, record.cost_pusd) == ("bound", 99 * 150_000 + 20 * 600_000)
    assert parts.admission.calls == [("release", ("r.1", record.cost_pusd), {})]


@pytest.mark.parametrize("waits", [True, False])
async def test_no_money_comes_back_before_the_record_is_written(
    metering, parts, attempt, waits
) -> None:
    parts.journal.full = True
    outcome = AttemptOutcome("finished", 200, USAGE, usage_final=True)
    if waits:
        with pytest.raises(JournalFull):
            await metering.settle(attempt, outcome)
    else:
        with pytest.raises(JournalFull):
            metering.settle_later(attempt, outcome)
    assert parts.admission.calls == []


async def test_reported_usage_is_priced_and_released_once(metering, parts, attempt) -> None:
    cost = await metering.settle(attempt, AttemptOutcome("finished", 200, USAGE, usage_final=True))
    (record,) = parts.journal.records
    assert cost == record.cost_pusd == 100 * 150_000 + 11 * 600_000
    assert (record.basis, record.tokens.input, record.tokens.output) == ("reported", 100, 11)
    assert (record.ttft_us, record.duration_us) == (500_000, 2_000_000)
    parts.metrics.flush()
    for name, seconds in (("request_duration", 2.0), ("ttft", 0.5)):
        sum_name = f"breakeven_{name}_seconds_sum"
        assert parts.registry.get_sample_value(sum_name, {"target": "alpha/m"}) == seconds
    assert record.compared[0].cost_pusd == cost
    assert parts.admission.calls == [("release", ("r.1", cost), {})]
    metering.settle_later(attempt, AttemptOutcome("client_gone", 499))
    assert len(parts.journal.records) == 1


@pytest.mark.parametrize("own", [True, False])
def test_what_is_promised_says_whose_target_it_is(metering, parts, attempt, own) -> None:
    """Costs of own engines and bills of APIs are added up apart, by this word."""
    target = attempt.step.frozen.target
    for name in ("pool", "replica", "provider", "upstream_model"):
        setattr(target, name, name)
    target.own, target.simulated = own, False
    verdict = attempt.step.verdict
    verdict.candidate = SimpleNamespace(bound_pusd=7, bid_price_pusd_per_s=1.6)
    plan, attempt.holds = attempt.plan, ()
    plan.identity.user_id, plan.identity.tags = "u", [("a", "b")]
    plan.identity.counts_on = ("maker",)
    plan.best_own = SimpleNamespace(kv_ratio=0.25, reason=Reason.KV_HEADROOM)
    plan.policy_version, plan.inputs, plan.shadow, plan.line_s = "3", b"i", None, 0.5
    metering.open(attempt, 1_780_000_000_000_000)
    (record,) = parts.journal.records
    spill = None if own else "kv_headroom"
    assert (record.backend, record.spill_reason) == ("own" if own else "api", spill)
    assert attempt.spill_reason == spill
    assert (record.pool, record.engine, record.provider) == ("pool", "replica", "provider")
    assert (record.price_version, record.bound_pusd, record.bid_price_pusd_per_s) == (7, 7, 2)
    assert (record.ttft_predicted_us, record.kv_headroom_ppm) == (400_000, 750_000)
    assert (record.line_us, record.attempt_no) == (500_000, 1)
    assert record.counts_on == ("maker",), "a budget on its maker's key that is declared later"
    parts.journal.records.clear()
    attempt.number = 2
    metering.open(attempt, 1_780_000_000_000_000)
    assert parts.journal.records[0].line_us == 0  # it stood in line once


@pytest.mark.parametrize(("n", "steps"), [(1, 11), (2, 5)])
def test_an_engines_pace_is_told_by_the_steps_of_each_choice(
    metering, parts, attempt, n, steps
) -> None:
    """Choices are decoded side by side, a token of each in a step; the first token is no step."""
    told: list[tuple] = []
    attempt.plan.request.n, attempt.step.frozen.target.own = n, True
    attempt.step.frozen.candidate.engine = SimpleNamespace(
        step=STEP, step_feedback=1.0, kv_capacity_tokens=10_000
    )
    attempt.flight = SimpleNamespace(
        record_pace=lambda model, **seen: told.append((model, seen)), release=lambda *_: None
    )
    usage = {"prompt_tokens": 100, "completion_tokens": 12}
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage, usage_final=True))
    assert told == [(STEP, {"observed_s": 1.0, "steps": steps})]


@pytest.mark.parametrize("step_us", [-3_600_000_000, 0, 3_600_000_000])
def test_an_attempt_ends_as_long_after_its_beginning_as_it_took_whatever_the_wall_clock_does(
    metering, parts, attempt, monkeypatch, step_us
) -> None:
    began_us = 1_780_000_000_000_000
    parts.clock.wall_us = lambda: began_us
    monkeypatch.setattr(
        "gateway.request.metering.opened_record",
        lambda _attempt, opened_us: SimpleNamespace(opened_us=opened_us, spill_reason=None),
    )
    metering.open(attempt, began_us)  # at 10 s of the monotonic clock, and settled at 12
    parts.clock.wall_us = lambda: began_us + 2_000_000 + step_us
    metering.settle_later(attempt, AttemptOutcome("finished", 200, USAGE, usage_final=True))
    opened, settled = parts.journal.records
    assert opened.opened_us == began_us
    assert settled.settled_us == began_us + settled.duration_us == began_us + 2_000_000


@pytest.mark.parametrize(
    ("outcome", "basis", "tokens"),
    [
        (AttemptOutcome("client_gone", 499, USAGE), "continuous", (100, 11)),
        (AttemptOutcome("client_gone", 499), "estimated", (90, 9)),
        (AttemptOutcome("upstream_error", 502, {"prompt_tokens": -4}), "estimated", (90, 9)),
        (AttemptOutcome("rejected", 429, billable=False), "estimated", (0, 0)),
    ],
)
def test_without_a_final_usage_the_basis_says_so(
    metering, parts, attempt, outcome, basis, tokens
) -> None:
    metering.settle_later(attempt, outcome)
    (record,) = parts.journal.records
    assert (record.basis, (record.tokens.input, record.tokens.output)) == (basis, tokens)


@pytest.mark.parametrize(("own", "tokens"), [(True, (0, 0)), (False, (90, 0))])
def test_an_own_engine_is_believed_when_it_reported_nothing(
    metering, parts, attempt, own, tokens
) -> None:
    """A provider may bill a prompt whose answer nobody waited for; an own engine sends no bill."""
    attempt.events, attempt.first_token_s = 0, None
    attempt.step.frozen.target.own = own
    metering.settle_later(attempt, AttemptOutcome("client_gone", 499))
    (record,) = parts.journal.records
    assert (record.tokens.input, record.tokens.output) == tokens


def test_what_an_own_engine_reported_is_not_disputed(metering, parts, attempt) -> None:
    attempt.step.frozen.target.own = True
    metering.settle_later(attempt, AttemptOutcome("finished", 200, USAGE, usage_final=True))
    (record,) = parts.journal.records
    assert (record.basis, record.disputed, record.tokens.input) == ("reported", False, 100)


@pytest.mark.parametrize(
    ("kind", "label"), [(RequestKind.CHAT, "input"), (RequestKind.RERANK, "ranked")]
)
def test_a_rankings_tokens_are_counted_apart(metering, parts, attempt, kind, label) -> None:
    attempt.plan.request.kind, attempt.plan.request.extent = kind, None
    metering.settle_later(attempt, AttemptOutcome("finished", 200, USAGE, usage_final=True))
    parts.metrics.flush()
    counted = {
        sample.labels["kind"]: sample.value
        for metric in parts.registry.collect()
        for sample in metric.samples
        if sample.name == "breakeven_tokens_total" and sample.value
    }
    assert counted.get(label) == 100
    assert {"input", "ranked"} & set(counted) == {label}


@pytest.mark.parametrize("agrees", [True, False])
def test_a_shadow_policy_that_chooses_another_target_disagrees(metering, parts, agrees) -> None:
    def choice(name: str) -> SimpleNamespace:
        chosen = SimpleNamespace(candidate=SimpleNamespace(name=name))
        return SimpleNamespace(first_choice=chosen, policy="other")

    shadow = choice("alpha/m" if agrees else "beta/m")
    plan = SimpleNamespace(
        terms=SimpleNamespace(undecided=()), decision=choice("alpha/m"),
        shadow=SimpleNamespace(policy="other", first_choice=shadow.first_choice),
    )  # fmt: skip
    metering.record_policy_notes(plan)
    parts.metrics.flush()
    labels = {"policy": "other", "agrees": "yes" if agrees else "no"}
    assert parts.registry.get_sample_value("breakeven_shadow_decisions_total", labels) == 1


@pytest.mark.parametrize(
    ("status", "first_s", "output", "met"),
    [
        ("finished", 10.5, 11, True),  # 500 ms, then 100 ms a token
        ("finished", 10.5, 10, False),  # the same second for fewer tokens
        ("finished", 11.2, 11, False),
        ("finished", None, 11, None),
        ("client_gone", 10.5, 11, None),
        ("upstream_error", 10.5, 11, False),
    ],
)
def test_the_slo_is_judged_by_what_the_client_saw(
    metering, parts, attempt, status, first_s, output, met
) -> None:
    attempt.first_token_s = first_s
    usage = {"prompt_tokens": 100, "completion_tokens": output}
    metering.settle_later(attempt, AttemptOutcome(status, 200, usage))
    assert parts.journal.records[0].slo_met is met


@pytest.mark.parametrize(
    ("slo", "output", "met"),
    [
        (Slo(ttft_ms=1000, tpot_ms=100), 11, True),  # two seconds: one, and ten times a tenth
        (Slo(ttft_ms=1000, tpot_ms=100), 10, False),
        (Slo(ttft_ms=1000), 11, None),  # only the first token was promised, and it is not seen
        (Slo(tpot_ms=100), 11, None),
        (Slo(ttft_ms=1900, tpot_ms=99), 2, False),  # of two tokens one is further
        (Slo(ttft_ms=1900, tpot_ms=100), 2, True),
        (Slo(ttft_ms=3000), 0, True),  # an embedding is all first token
        (Slo(ttft_ms=1000), 0, False),
    ],
)
def test_an_answer_in_one_piece_has_the_time_of_its_stream(
    metering, parts, attempt, slo, output, met
) -> None:
    attempt.plan.asked.stream = False
    attempt.plan.policy.slo = slo
    usage = {"prompt_tokens": 100, "completion_tokens": output}
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage))
    (record,) = parts.journal.records
    assert record.slo_met is met
    assert record.ttft_us is None


@pytest.mark.parametrize(("output", "met"), [(22, True), (20, False)])
def test_choices_of_an_answer_in_one_piece_are_made_beside_each_other(
    metering, parts, attempt, output, met
) -> None:
    attempt.plan.asked.stream, attempt.plan.request.n = False, 2
    usage = {"prompt_tokens": 100, "completion_tokens": output}
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage))
    assert parts.journal.records[0].slo_met is met


def test_the_pace_of_two_tokens_is_the_time_of_one(metering, attempt) -> None:
    attempt.first_token_s, attempt.last_token_s = 10.5, 11.0
    assert metering._tpot_s(attempt, TokenCounts(output=2)) == 0.5
    assert metering._tpot_s(attempt, TokenCounts(output=1)) is None
    attempt.plan.request.n = 2  # made beside each other
    assert metering._tpot_s(attempt, TokenCounts(output=4)) == 0.5
    assert metering._tpot_s(attempt, TokenCounts(output=3)) is None


@pytest.mark.parametrize(("waited_s", "met"), [(0.4, True), (0.6, False)])
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_waits_in_the_queue_too(metering, parts, attempt, stream, waited_s, met) -> None:
    """Its first token came half a second after dispatch, its whole answer after two."""
    attempt.plan.asked.stream, attempt.waited_s = stream, waited_s
    attempt.plan.policy.slo = Slo(ttft_ms=1000 if stream else 2500, tpot_ms=100 if stream else 0)
    usage = {"prompt_tokens": 100, "completion_tokens": 11}
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage))
    assert parts.journal.records[0].slo_met is met


def test_what_was_expected_is_held_against_what_came(metering, parts, attempt) -> None:
    """Of finished answers that reported their usage; 90 tokens were expected of the prompt."""
    usage = {"prompt_tokens": 95, "completion_tokens": 11}
    metering.settle_later(attempt, AttemptOutcome("client_gone", 499, usage))
    attempt.settled = False
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage, usage_final=True))
    parts.metrics.flush()

    def account(estimate: str) -> list[float | None]:
        labels = {"estimate": estimate, "backend": "own" if attempt.own else "api"}
        names = ("_predicted", "_observed", "_error", "s")
        value = parts.registry.get_sample_value
        return [value(f"breakeven_estimate{name}_total", labels) for name in names]

    assert account("prompt_tokens") == [90.0, 95.0, 5.0, 1.0]
    assert account("output_tokens") == [15.0, 11.0, 4.0, 1.0]
    assert account("ttft_seconds") == pytest.approx([0.4, 0.5, 0.1, 1.0])
    assert account("tpot_seconds") == [None] * 4  # infinite


def test_an_attempt_is_counted_once_with_what_it_used(metering, parts, attempt) -> None:
    attempt.step.frozen.candidate.bound_pusd = 10**12
    attempt.plan.request.prompt_tokens_bound = 100
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 60}}
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage, usage_final=True))
    (record,) = parts.journal.records
    parts.metrics.flush()
    samples = [sample for metric in parts.registry.collect() for sample in metric.samples]

    def told(name: str, label: str) -> dict[str, float]:
        return {
            sample.labels[label]: sample.value
            for sample in samples
            if sample.name == f"breakeven_{name}_total" and sample.value
        }

    assert told("requests", "status") == {"finished": 1}
    assert told("slo", "met") == {"yes": 1}
    assert told("tokens", "kind") == {"input": 40, "cached": 60, "output": 11}
    assert record.cost_pusd
    assert told("cost_usd", "backend") == {"api": record.cost_pusd / 1e12}


def test_the_pace_of_a_stream_is_observed_by_its_target(metering, parts, attempt) -> None:
    """Of own engines and of APIs alike; the gaps that were counted are handed over once."""
    attempt.gaps = [0] * (GAP_BUCKETS - 1) + [10]
    usage = {"prompt_tokens": 95, "completion_tokens": 11}
    metering.settle_later(attempt, AttemptOutcome("finished", 200, usage, usage_final=True))
    parts.metrics.flush()
    labels = {"target": parts.metrics.target(attempt.step.frozen.target.name)}
    value = parts.registry.get_sample_value
    decode_s = attempt.last_token_s - attempt.first_token_s
    assert value("breakeven_tpot_seconds_sum", labels) == pytest.approx(decode_s / 10)
    assert value("breakeven_inter_token_latency_seconds_count", labels) == 10
    assert value("breakeven_inter_token_latency_seconds_sum", labels) == pytest.approx(decode_s)


def test_nothing_promised_nothing_judged(metering, parts, attempt) -> None:
    attempt.plan.policy.slo = Slo()
    metering.settle_later(attempt, AttemptOutcome("finished", 200, USAGE))
    assert parts.journal.records[0].slo_met is None


def test_an_unpriced_target_is_never_free(metering, parts, attempt) -> None:
    attempt.step.frozen.price = None
    metering.settle_later(attempt, AttemptOutcome("finished", 200, USAGE))
    assert parts.journal.records[0].cost_pusd is None


@pytest.mark.parametrize(
    ("outcome", "stream", "ttft_s", "fine"),
    [
        (AttemptOutcome("finished", 200, USAGE, usage_final=True), True, 0.5, True),
        (AttemptOutcome("finished", 200, USAGE, usage_final=True), False, None, True),
        (AttemptOutcome("client_gone", 499), True, 0.5, True),
        (AttemptOutcome("rejected", 400, error=REFUSED, billable=False), True, 0.5, True),
        (AttemptOutcome("rejected", 503, error="overloaded", billable=False), True, 0.5, False),
        (AttemptOutcome("upstream_error", 500, error="server_error"), True, 0.5, False),
    ],
)
def test_an_api_is_blamed_for_its_own_faults_only(
    metering, parts, attempt, outcome, stream, ttft_s, fine
) -> None:
    attempt.plan.asked.stream = stream
    metering.settle_later(attempt, outcome)
    ((_, _, said),) = parts.experience.calls
    assert (said["ttft_s"], said["ok"]) == (ttft_s, fine)


@pytest.mark.parametrize("status", ["client_gone", "timeout"])
@pytest.mark.parametrize("own", [True, False])
def test_who_is_given_up_before_its_first_token_is_not_judged(
    metering, parts, attempt, own, status
) -> None:
    """A client that leaves, stalls or is drained says nothing of the target."""
    attempt.step.frozen.target.own = own
    attempt.first_token_s, attempt.events = None, 0
    metering.settle_later(attempt, AttemptOutcome(status, 499))
    assert parts.experience.calls == []
    attempt.settled = False
    metering.settle_later(attempt, AttemptOutcome("timeout", 504, error="head_timeout"))
    ((_, _, said),) = parts.experience.calls
    assert said["ok"] is False


def test_a_client_that_stalls_is_not_the_targets_failure(metering, parts, attempt) -> None:
    metering.settle_later(attempt, AttemptOutcome("timeout", 499))
    ((_, _, said),) = parts.experience.calls
    assert said["ok"] is True


@pytest.mark.parametrize(
    ("error", "ok", "suspected"),
    [
        ("server_error", False, True),
        ("upstream_broken", False, True),
        ("bad_answer", False, True),
        ("unreachable", False, False),
        ("overloaded", False, False),
        ("head_timeout", False, False),
        ("too_long", True, False),
        ("unserved", True, False),
    ],
)
def test_a_failure_that_the_request_may_have_caused_names_its_key(
    metering, parts, attempt, error, ok, suspected
) -> None:
    metering.settle_later(attempt, AttemptOutcome("upstream_error", 500, error=error))
    ((_, _, said),) = parts.experience.calls
    expected = attempt.plan.identity.key_id if suspected else None
    assert (said["ok"], said["suspect"]) == (ok, expected)


@pytest.mark.parametrize(("reason", "cut"), [("stop", False), ("length", True)])
async def test_only_reported_usage_teaches_lengths(metering, parts, attempt, reason, cut) -> None:
    metering.settle_later(attempt, AttemptOutcome("client_gone", 499, USAGE))
    assert parts.lengths.calls == []
    attempt.settled = False
    outcome = AttemptOutcome("finished", 200, USAGE, usage_final=True, finish_reason=reason)
    await metering.settle(attempt, outcome)
    assert parts.lengths.calls == [("observe", (("m", "t"), 100, 11), {"cut": cut})]
    settled_us = parts.journal.records[-1].settled_us
    assert parts.ratio.calls == [("observe", (("m", "t"), 400, 100, settled_us / 1e6), {})]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("usage", [USAGE, None])
@pytest.mark.parametrize("first_s", [10.5, None])
def test_what_was_read_is_known_to_the_caches_of_who_read_it_or_would_have(
    metering, parts, attempt, tmp_path, own, usage, first_s
) -> None:
    """A figure says that a prompt was read, and so does a first token."""
    forecast = CacheForecast(ProviderCaches(tmp_path / "caches"), CachedShare())
    prefix, plan = PromptPrefix(tuple(range(40)), 0, ENDS[39]), attempt.plan
    tokens = ENDS[39] // 4
    plan.request.beginning, plan.request.prompt_tokens = prefix, tokens
    plan.request.prompt_tokens_bound, plan.asked.prompt_bytes = 2 * tokens, ENDS[39]
    plan.best_own, attempt.step.frozen.prefix_tokens = "own", tokens
    attempt.step.frozen.target.own, attempt.first_token_s = own, first_s
    metering._learner._learned.cached = forecast
    told = usage and {**usage, "prompt_tokens": tokens, "total_tokens": tokens + 11}
    outcome = AttemptOutcome("finished", 200, told, usage_final=True)
    metering.settle_later(attempt, outcome)
    read = 40 if usage or first_s else 0
    assert forecast.caches.count_known("alpha/m", prefix, 13.0) == (0 if own else read)
    assert forecast.caches.count_known("~openai/x", prefix, 13.0) == read
    forecast.caches.close()


def test_a_refusal_stands_when_the_journal_has_no_room(metering, parts, attempt) -> None:
    metering.refuse(attempt.plan, reason="budget", http_status=429, scope="team:t")
    (record,) = parts.journal.records
    assert (record.reason, record.scope) == ("budget", "team:t")
    parts.journal.full = True
    metering.refuse(attempt.plan, reason="budget", http_status=429)
    assert len(parts.journal.records) == 1
