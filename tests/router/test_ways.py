from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.decide import decide
from router.explain import as_dict, as_lines, short
from router.packed import pack, unpack
from router.prompts import RequestUnits
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.snapshot_codec import decode, encode
from router.types import (
    Candidate,
    EngineState,
    InfeasibleAction,
    OutputMoments,
    Policy,
    PrefillOption,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
)
from router.ways import may_go_apart, way_price

STEP = StepModel(4.79e-3, 28e-6, 46.8e-9, 27.8e-6, 13.8e-3)
CHAT = frozenset({RequestKind.CHAT})
PLAIN = Policy("plain")


def engine(**changes) -> EngineState:
    values = {
        "health": TargetHealth.HEALTHY, "step": STEP, "running": 0, "waiting": 0,
        "context_tokens": 0.0, "queued_prefill_tokens": 0.0, "kv_capacity_tokens": 480_000,
        "kv_used_tokens": 0.0, "kv_promised_tokens": 0.0, "kv_block_tokens": 16,
        "max_num_seqs": 256, "prefill_budget_tokens": 2048,
    }  # fmt: skip
    return EngineState(**values | changes)


def option(name="pool:a/1", price=1e6, **changes) -> PrefillOption:
    return PrefillOption(name, engine(**changes), price, 0.02, 13e-6)


def own(name, price=1e6, options=(), *, spare=False, **changes) -> Candidate:
    return Candidate(
        name, "a", frozenset(), CHAT, 32_768, True, 0, 10, 10**12, None, price,
        engine=engine(**changes), prefillers=tuple(options), is_apart=True, is_spare=spare,
    )  # fmt: skip


def asked(prompt=4000, output=200, **changes) -> RoutingRequest:
    moments = OutputMoments(100, output, float(output) ** 2, 2.0 * output)
    values = {"max_tokens": 400, "output": moments}
    return RoutingRequest(RequestKind.CHAT, "m", prompt, 2 * prompt, **values | changes)


def way(decision) -> str:
    chosen = decision.first_choice
    name = chosen.candidate.name.rpartition("/")[2]
    return name if chosen.prefill is None else f"{chosen.prefill.name.rpartition('/')[2]}>{name}"


def house(read=1e6, answer=1e6, whole=1e6, **states):
    """A whole replica, one that reads, one that answers; `states`: what changes of each."""
    replica, reader, answerer = (states.get(name, {}) for name in ("replica", "reader", "answerer"))
    return (
        own("pool:a/0", whole, **replica),
        own("pool:a/1", read, spare=True, **reader),
        own("pool:a/2", answer, [option(price=read, **reader)], **answerer),
    )


def test_with_equal_prices_and_no_promise_the_least_engine_time_is_chosen() -> None:
    decision = decide(asked(), PLAIN, house())
    least = min(decision.order, key=lambda verdict: verdict.engine_seconds)
    assert decision.first_choice.engine_seconds == least.engine_seconds
    assert way(decision) == "0"  # nothing moves, so nothing is held twice
    # A slower whole replica takes more, and the time decides again.
    slow = replace(STEP, d_s=2 * STEP.d_s)
    assert way(decide(asked(), PLAIN, house(replica={"step": slow}))) == "2"


@pytest.mark.parametrize(
    ("prices", "chosen"),
    [
        ({}, "0"),
        ({"whole": 1e8}, "2"),
        ({"whole": 1e8, "answer": 1e8}, "1>2"),
        ({"whole": 1e8, "answer": 1e8, "read": 1e9}, "0"),
    ],
)
def test_a_changed_price_changes_the_way(prices, chosen) -> None:
    assert way(decide(asked(), PLAIN, house(**prices))) == chosen


def test_an_engine_that_an_operator_keeps_requests_from_reads_no_prompts() -> None:
    """It was to be emptied, for a restart or for good, and prompts went on to be read there."""
    prices = {"whole": 1e8, "answer": 1e8}
    assert way(decide(asked(), PLAIN, house(**prices))) == "1>2", "the control"
    barred = {"pool:a/1": (Reason.DISABLED, "disabled by ann")}
    decision = decide(asked(barred=barred), PLAIN, house(**prices))
    assert way(decision) in {"0", "2"}
    assert all(verdict.prefill is None for verdict in decision.verdicts)


def test_prices_below_the_least_one_compare_by_time() -> None:
    free = decide(asked(), PLAIN, house(0.0, 0.0, 0.0))
    assert way(free) == way(decide(asked(), PLAIN, house()))


def test_a_promise_of_pace_sends_prompts_elsewhere() -> None:
    """Prompts that arrive slow whoever decodes; an engine that only reads promises no pace."""
    tight = Policy("tight", Slo(ttft_ms=2000.0, tpot_ms=8.0), penalty_pusd=10**9)
    reading = {"prefill_rate_tokens_per_s": 20_000.0, "running": 8, "context_tokens": 20_000.0}
    decision = decide(asked(), tight, house(replica=reading, reader=reading))
    told = {verdict.candidate.name: verdict for verdict in decision.verdicts}
    assert told["pool:a/0"].reason is Reason.TPOT
    assert told["pool:a/1"].reason is Reason.TPOT  # were it to answer as well
    assert decision.first_choice.candidate.name == "pool:a/2"


def test_one_that_reads_keeps_the_pace_of_answers_that_it_has_itself() -> None:
    """Reading beside answers slows them: it is refused where their promise would break."""
    prices = {"whole": 1e8, "answer": 1e8}
    answers = {"running": 8, "context_tokens": 20_000.0, "prefill_rate_tokens_per_s": 20_000.0}
    free = decide(asked(), PLAIN, house(reader=answers, **prices))
    assert way(free) == "1>2", "the control: nobody there has a promise"
    loose = {**answers, "tightest_tpot_ms": 200.0}
    assert way(decide(asked(), PLAIN, house(reader=loose, **prices))) == "1>2"
    tight = {**answers, "tightest_tpot_ms": 8.0}
    decision = decide(asked(), PLAIN, house(reader=tight, **prices))
    assert all(verdict.prefill is None for verdict in decision.verdicts)


@pytest.mark.parametrize(("answerer", "chosen"), [
    ({}, "1"),  # nothing is read there
    ({"prefill_rate_tokens_per_s": 20_000.0}, "2"),
    ({"prefill_rate_tokens_per_s": 20_000.0, "tightest_tpot_ms": 6.0}, "1"),  # it has tighter ones
    ({"prefill_rate_tokens_per_s": 20_000.0, "health": TargetHealth.DOWN}, "1"),
])  # fmt: skip
def test_one_that_reads_answers_only_beside_what_the_others_read(answerer, chosen) -> None:
    """After a rush both read and answered, and nothing was read for another engine again."""
    tight = Policy(
        "tight", Slo(ttft_ms=2000.0, tpot_ms=8.0), penalty_pusd=10**9,
        otherwise=InfeasibleAction.BEST_EFFORT,
    )  # fmt: skip
    own_answers = {"running": 8, "context_tokens": 20_000.0, "tightest_tpot_ms": 8.0}
    full = {"running": 40, "context_tokens": 400_000.0, **answerer}
    _, reader, answering = house(reader=own_answers, answerer=full)
    decision = decide(asked(), tight, [reader, answering])
    assert decision.first_choice.candidate.name.endswith(chosen)


def test_a_promise_of_the_first_token_chooses_whatever_the_price() -> None:
    """One that answers reads in small steps; with the promise its own reading comes too late."""
    small = {"prefill_budget_tokens": 128}
    states = {"replica": small, "answerer": small}
    soon = Policy("soon", Slo(ttft_ms=320.0))
    decision = decide(asked(), soon, house(read=1e9, **states))
    assert way(decision) == "1>2"
    told = {verdict.candidate.name: verdict.reason for verdict in decision.verdicts}
    assert told["pool:a/0"] is Reason.TTFT
    assert way(decide(asked(), PLAIN, house(read=1e9, **states))) in ("0", "2")


def test_first_tokens_count_reading_moving_and_a_step() -> None:
    candidates = house(whole=1e8, answer=1e8)
    chosen = decide(asked(), PLAIN, candidates).first_choice
    prefill = chosen.prefill
    assert chosen.ttft_ms > prefill.ttft_ms + 1000.0 * prefill.transfer_s
    assert prefill.transfer_s == pytest.approx(0.02 + 13e-6 * 4000)
    assert prefill.kv_promise_tokens == 4016  # its prompt and a token, in whole blocks
    assert chosen.engine_seconds > prefill.engine_seconds > 0.0
    cached = house(whole=1e8, answer=1e8, answerer={"prefix_hit_tokens": 3000})
    moved = decide(asked(), PLAIN, cached).first_choice
    assert moved.prefill is None or moved.prefill.transfer_s == pytest.approx(0.02 + 0.013)


@pytest.mark.parametrize(
    "reader",
    [
        {"health": TargetHealth.DOWN},
        {"health": TargetHealth.UNKNOWN},
        {"step": None},
        {"kv_used_tokens": 478_000.0},
        {"kv_promised_tokens": 470_000.0},
        {"kv_capacity_tokens": 0},
    ],
)
def test_an_engine_that_cannot_read_reads_nothing(reader) -> None:
    """Also where its KV has no room: both sides count."""
    dear = house(whole=1e8, answer=1e8, reader=reader)
    assert way(decide(asked(), PLAIN, dear)) in ("0", "2")
    assert way(decide(asked(), PLAIN, house(whole=1e8, answer=1e8))) == "1>2"


@pytest.mark.parametrize(
    "request_",
    [asked(n=2), asked(extent=RequestUnits())],
)
def test_what_is_not_one_sequence_goes_whole_or_straight(request_) -> None:
    assert not may_go_apart(request_)
    assert may_go_apart(asked())
    decision = decide(asked(n=2), PLAIN, house(whole=1e8, answer=1e8))
    assert all(verdict.prefill is None for verdict in decision.verdicts)


def test_who_reads_for_others_comes_last() -> None:
    decision = decide(asked(), PLAIN, house())
    assert [verdict.candidate.name for verdict in decision.order][-1] == "pool:a/1"
    assert decision.order[-1].reason is Reason.SPARE
    alone = decide(asked(), PLAIN, [own("pool:a/1")])
    assert alone.first_choice.reason is Reason.ONLY


def test_of_two_that_read_the_less_busy_one_does() -> None:
    full = option("pool:a/1", running=40, context_tokens=150_000.0, kv_used_tokens=300_000.0)
    idle = option("pool:a/3")
    answerer = own("pool:a/2", 1e8, [full, idle])
    assert way(decide(asked(), PLAIN, [answerer])) == "3>2"


def test_a_queue_is_load_where_nothing_is_promised() -> None:
    queue = {"queued_prefill_tokens": 60_000.0, "kv_promised_tokens": 60_000.0, "running": 9}
    two = [own("pool:a/0", **queue), own("pool:a/3")]
    assert way(decide(asked(), PLAIN, two)) == "3"


@given(st.floats(0.0, 1e15), st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_a_fuller_engine_is_never_worth_less(price, load, more) -> None:
    assert 0.0 < way_price(price, load) <= way_price(price, load + more)


@given(st.permutations(range(3)), st.sampled_from([1e3, 1e6, 1e8]), st.integers(1, 20_000))
def test_the_order_of_candidates_changes_nothing(order, price, prompt) -> None:
    candidates = house(answer=price)
    shuffled = [candidates[place] for place in order]
    first, second = (decide(asked(prompt), PLAIN, each) for each in (candidates, shuffled))
    assert [v.candidate.name for v in first.order] == [v.candidate.name for v in second.order]
    assert way(first) == way(second)


def test_a_decision_with_roles_is_kept_and_made_again() -> None:
    candidates = house(whole=1e8, answer=1e8)
    decision = decide(asked(), PLAIN, candidates)
    again = decode(encode(asked(), PLAIN, candidates))
    assert decide(*again) == decide(asked(), PLAIN, again[2])
    assert again[2] == candidates
    (first, *_) = unpack(pack(asked(), PLAIN, decision))["candidates"]
    assert first["prefill"]["name"] == "pool:a/1"
    assert first["prefill"]["transfer_s"] == pytest.approx(decision.first_choice.prefill.transfer_s)
    assert "prefill=pool:a/1" in short(decision)
    assert "prompt read by pool:a/1" in "\n".join(as_lines(decision))
    assert as_dict(decision)["candidates"][0]["prefill"]["name"] == "pool:a/1"


def test_pools_without_roles_are_kept_as_they_were() -> None:
    plain = replace(own("pool:a/0"), is_apart=False)
    *_, (frozen,) = encode(asked(), PLAIN, [plain])
    assert len(frozen) == 19


def test_where_no_way_keeps_the_promise_prompts_are_still_read_elsewhere() -> None:
    """Both ways forecast the same pace; prompts at the engine that answers would slow it further.

    They were read there, it slowed, and no prompt was ever read elsewhere again.
    """
    tight = Policy(
        "tight", Slo(ttft_ms=5000.0, tpot_ms=4.0), penalty_pusd=10**9,
        otherwise=InfeasibleAction.BEST_EFFORT,
    )  # fmt: skip
    _, reader, answerer = house()
    decision = decide(asked(), tight, [reader, answerer])
    assert decision.reason is Reason.BEST_EFFORT
    assert way(decision) == "1>2"


def test_an_engine_that_reads_for_others_answers_last_whatever_refuses_them() -> None:
    """Its own answers would keep it from reading, and later prompts from being read elsewhere."""
    tight = Policy(
        "tight", Slo(ttft_ms=5000.0, tpot_ms=4.0), penalty_pusd=10**9,
        otherwise=InfeasibleAction.BEST_EFFORT,
    )  # fmt: skip
    busy = {"queued_prefill_tokens": 20_000.0, "running": 10}
    _, reader, answerer = house(answerer=busy)
    assert decide(asked(), tight, [reader, answerer]).first_choice.candidate.name == "pool:a/2"
    # A price above what the request is worth refuses those that answer, and it alone had none.
    dear = house(answer=1e18)
    order = decide(asked(), PLAIN, dear[1:]).order
    assert [verdict.candidate.name for verdict in order] == ["pool:a/2", "pool:a/1"]
    assert order[1].reason is Reason.SPARE
