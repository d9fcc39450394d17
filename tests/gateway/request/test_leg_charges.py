from types import SimpleNamespace

import pytest
from charge_cases import GONE, RATE, STEP, attempt, charge
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.leg_charges import busy_us
from gateway.request.prefill_leg import LegEnd, PrefillLeg
from ledger.accounts import provisional_charge_pusd
from router.types import PrefillForecast

DONE = AttemptOutcome(
    "finished", 200, {"prompt_tokens": 500, "completion_tokens": 20}, usage_final=True
)
FORECAST = PrefillForecast("pool:a/1", 60.0, 0.1, 0.05, 512, 0.03, 0.1, 0.0)
READER = SimpleNamespace(step=STEP, step_feedback=1.0, kv_capacity_tokens=10_000)


def leg(**changes) -> PrefillLeg:
    target = SimpleNamespace(replica="1")
    made = PrefillLeg(target, READER, FORECAST, None, 10.0, sent=True)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


READ = {"params": {"remote_host": "127.0.0.1"}, "ended_s": 10.06, "prompt_tokens": 500,
        "end": LegEnd.DONE}  # fmt: skip


def apart(**changes):
    made = attempt()
    made.step.frozen.target.replica = "2"
    made.step.verdict.kv_promise_tokens = 528
    made.prefill = leg(**changes)
    return made


def test_reading_is_charged_to_who_read_and_nothing_twice() -> None:
    whole = charge(attempt(), DONE, now_s=11.0)
    found = charge(apart(**READ, read_s=10.1), DONE, now_s=11.0)
    read, answered = found.legs
    assert found.engine_us == busy_us(found.legs) == read.busy_us + answered.busy_us
    assert found.cost_pusd == provisional_charge_pusd(found.engine_us, RATE, 1)
    assert read.busy_us >= round(1e6 * 500 * STEP.d_s)
    assert answered.busy_us == whole.engine_us - round(1e6 * 499 * STEP.d_s)
    assert (read.engine, read.role, read.outcome) == ("1", "prefill", "done")
    assert (answered.engine, answered.role, answered.outcome) == ("2", "decode", "done")
    assert (read.kv_tokens, answered.kv_tokens) == (512, 528)
    assert (read.held_us, answered.held_us) == (pytest.approx(100_000, abs=1), 1_000_000)
    assert answered.transfer_us == pytest.approx(40_000, abs=1)


def test_where_nobody_read_who_answers_did() -> None:
    whole = charge(attempt(), DONE, now_s=11.0)
    failed = charge(apart(ended_s=10.02, end=LegEnd.FAILED), DONE, now_s=11.0)
    read, answered = failed.legs
    assert answered.busy_us == whole.engine_us
    assert answered.transfer_us is None
    assert read.busy_us == 20_000  # no more than the time that passed
    assert (read.outcome, read.held_us) == ("failed", pytest.approx(20_000, abs=1))
    never = charge(apart(sent=False, ended_s=10.0, end=LegEnd.FAILED), DONE, now_s=11.0)
    assert [each.role for each in never.legs] == ["decode"]


def test_who_hangs_up_pays_for_what_was_read() -> None:
    found = charge(apart(), GONE, now_s=10.01)
    read, answered = found.legs
    assert (read.outcome, read.busy_us) == ("left", 10_000)
    assert answered.outcome == "left"
    assert found.engine_us == busy_us(found.legs)


def test_other_attempts_have_no_parts() -> None:
    assert charge(attempt(), DONE, now_s=11.0).legs == ()


@given(
    st.floats(10.0, 12.0), st.one_of(st.none(), st.floats(0.0, 2.0)),
    st.sampled_from([DONE, GONE, AttemptOutcome("finished", 200)]), st.booleans(),
)  # fmt: skip
def test_parts_always_add_up_and_none_is_less_than_nothing(now_s, took_s, outcome, read) -> None:
    ended_s = None if took_s is None else 10.0 + took_s
    changes = {**READ, "ended_s": ended_s} if read else {"ended_s": ended_s}
    found = charge(apart(**changes), outcome, now_s=now_s)
    assert found.engine_us == busy_us(found.legs)
    assert all(min(each.busy_us, each.held_us, each.kv_tokens) >= 0 for each in found.legs)
