"""Engines over HTTP: what they do, drained and resumed; nobody restarts one that still serves."""

import pytest

from backends.simulator.profiles import PROFILES
from gateway.cli.engineops import _late, _why
from gateway.control.admin.engines import _steps
from gateway.fleet.engine_notes import PARENT, EngineStatusNotes
from router.types import EngineState, StepModel, TargetHealth

SHAPE = PROFILES["h100-llama-3.1-8b-fp8"].shape
FOR = "/v1/organization/engines"


@pytest.fixture(scope="module")
def operator(stack) -> str:
    return stack.key("engines", scopes=("operations:apply",)).token


def test_each_engine_is_shown(stack, operator, patiently) -> None:
    def measured() -> list:
        """Telemetry opens a connection of its own for the round trip."""
        found = stack.get(FOR, operator).json()["data"]
        return found if found[0]["round_trip_us"] is not None else []

    main, embed = patiently(measured)
    assert (main["engine"], main["state"], main["managed"]) == ("pool:main/0", "healthy", False)
    assert (embed["override"], embed["held"]) == (None, False)
    assert main["upkeep"] is None
    assert main["round_trip_us"] > 0  # of a real connection, on this machine
    assert main["far"] is False


def test_a_drain_is_held_until_it_is_resumed(stack, operator) -> None:
    (item,) = stack.post(FOR + "/drain", {"engine": "pool:main"}, operator).json()["data"]
    assert item["override"].startswith("disabled by key:")
    done = stack.post(FOR + "/resume", {"engine": "pool:main"}, operator).json()
    assert done == {"engine": "pool:main", "drained": False}
    assert stack.get(FOR, operator).json()["data"][0]["override"] is None


@pytest.mark.parametrize("verb", ["drain", "restart"])
def test_an_unknown_engine_is_named_with_those_there_are(stack, operator, verb) -> None:
    answer = stack.post(f"{FOR}/{verb}", {"engine": "pool:none"}, operator)
    assert answer.status_code == 400
    assert "the engines are pool:main/0, pool:embed/0" in answer.json()["error"]["message"]


def test_what_was_not_started_here_is_not_restarted_here(stack, operator) -> None:
    answer = stack.post(FOR + "/restart", {"engine": "pool:main"}, operator)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "engine")
    assert "restart it where it runs" in answer.json()["error"]["message"]


def at_rest(budget: int, *, pace: float = 1.0) -> EngineState:
    step = SHAPE.step
    return EngineState(
        TargetHealth.HEALTHY,
        StepModel(step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s),
        0,
        0,
        0.0,
        0.0,
        SHAPE.kv_capacity_tokens,
        0,
        0.0,
        16,
        SHAPE.max_num_seqs,
        budget,
        pace,
    )


def test_steps_that_break_a_promise_are_told_with_a_budget_that_keeps_it() -> None:
    found = _steps(at_rest(2048), 50_000)
    assert found == {"full_step_us": 61_752, "breaks_tpot": True, "prefill_budget_advised": 960}
    said = _late({"engine": "pool:p/0", **found})
    assert "pool:p/0: a step full of prompts takes 62 ms" in said
    assert "set prefill_budget_tokens: 960 (vLLM: --max-num-batched-tokens)" in said
    kept = _steps(at_rest(960), 50_000)
    assert (kept["breaks_tpot"], kept["prefill_budget_advised"]) == (False, None)
    assert _late({"engine": "pool:p/0", **kept}) == ""
    slow = _steps(at_rest(960, pace=1.7), 50_000)  # slower than it was measured
    assert slow["breaks_tpot"]
    assert slow["prefill_budget_advised"] < 960
    never = _steps(at_rest(2048), 10_000)
    assert (never["breaks_tpot"], never["prefill_budget_advised"]) == (True, None)
    assert "promise more" in _late({"engine": "pool:p/0", **never})
    assert _steps(at_rest(2048), None)["breaks_tpot"] is False


def test_an_engine_is_told_with_what_is_said_of_it(stack, operator) -> None:
    seen = {"engine": "pool:p/0", "state": "backing_off", "reason": "exited with 1: [Errno 12]"}
    assert _why(seen) == "pool:p/0 is backing_off: exited with 1: [Errno 12]"
    assert _why(seen | {"reason": None}) == ""
    EngineStatusNotes(stack.runtime.run_dir, PARENT).publish(
        "pool:main/0", "without the adapter `sql`: spoiled"
    )
    main, embed = stack.get(FOR, operator).json()["data"]
    assert (main["reason"], embed["reason"]) == ("without the adapter `sql`: spoiled", None)
    EngineStatusNotes(stack.runtime.run_dir, PARENT).publish()
