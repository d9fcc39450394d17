"""The judge finds each way in which a case can be wrong, and nothing where it is right."""

import pytest
from field_cases import MoneyCase
from field_client import CaseRun
from field_judge import faults_of
from field_upstream import ScriptRun

COST, HOLD = 250_000_000, 600_000_000
RIGHT = {
    "status": [200],
    "admitted": 1,
    "booked_usd": "0.00025",
    "billed_usd": {"least": "0.0002", "most": "0.0003"},
    "hold_usd": {"least": "0.0006"},
    "basis": "reported",
    "flag": None,
    "tokens": {"input": 50, "written": 30, "output": {"least": 20}},
    "made": True,
    "output_usd_per_million": "10",
    "early": 5,
}
ROW = {
    "request_id": "r", "cost_pusd": COST, "bound_pusd": HOLD, "basis": "reported", "flag": None,
    "input_tokens": 50, "cached_tokens": 0, "cache_write_tokens": 10, "cache_write_1h_tokens": 20,
    "output_tokens": 20,
}  # fmt: skip


def run_of(right, *, budget_usd=None, statuses=(200,), rows=(ROW,), made=20, first=1):
    case = MoneyCase("case", "", (), (right,), {}, {}, budget_usd)
    script = ScriptRun()
    script.made = made
    return CaseRun(case, {"": list(statuses)}, {"": {"r"}}, list(rows), [script], first)


def changed(**changes):
    return {"rows": ({**ROW, **changes},)}


def test_a_right_run_has_no_faults() -> None:
    assert faults_of(run_of(RIGHT, budget_usd=0.00025)) == []


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (changed(bound_pusd=COST - 1), "above the hold"),
        (changed(cost_pusd=None, claimed_pusd=COST), "no cost"),
        ({"budget_usd": 0.0002}, "of a hard budget"),
        ({"statuses": (502,)}, "answers [502]"),
        ({"statuses": (200, 200)}, "2 admitted"),
        ({"rows": ()}, "no row"),
        (changed(cost_pusd=COST - 1), "booked_usd"),
        (changed(claimed_pusd=2 * COST), "billed_usd"),
        (changed(bound_pusd=HOLD - 1), "hold_usd"),
        (changed(basis="estimated"), "basis"),
        (changed(flag="disputed"), "flag"),
        (changed(input_tokens=51), "input tokens"),
        (changed(cache_write_1h_tokens=0), "written tokens"),
        (changed(output_tokens=19), "output tokens"),
        ({"made": 26}, "for 26 tokens"),
        ({"made": 0}, "shows nothing"),
        ({"first": 5}, "the first word"),
        ({"first": None}, "the first word"),
    ],
)
def test_each_fault_is_found(run, fault: str) -> None:
    assert fault in "; ".join(faults_of(run_of(RIGHT, **run)))


@pytest.mark.parametrize(
    ("row", "flag", "faults"),
    [
        ({}, "*", 1),
        ({}, "disputed", 1),
        ({"flag": "disputed"}, "*", 0),
        ({"flag": "disputed"}, "disputed", 0),
        ({"flag": "over_bound"}, "disputed", 1),
        ({"partly_read": True}, "*", 0),
    ],
)
def test_flags(row, flag: str, faults: int) -> None:
    right = {"status": [200], "flag": flag}
    assert len(faults_of(run_of(right, **changed(**row)))) == faults


@pytest.mark.parametrize(
    ("statuses", "faults"), [((400,), ["something was sent", "a row"]), ((200,), ["not refused"])]
)
def test_a_refusal_sends_and_books_nothing(statuses, faults) -> None:
    assert faults_of(run_of({"refused": True}, statuses=statuses))[: len(faults)] == faults


def test_holds_of_two_steps_are_compared() -> None:
    right = {"same_hold": ["before", "after"], "status": [200]}
    run = run_of(right, rows=(ROW, {**ROW, "request_id": "s", "bound_pusd": HOLD + 1}))
    run.statuses = {"before": [200], "middle": [429], "after": [200]}
    run.requests = {"before": {"r"}, "middle": set(), "after": {"s"}}
    assert [fault.partition(" ")[0] for fault in faults_of(run)] == ["held"]
    run.requests["after"] = {"r"}
    assert faults_of(run) == []
    run.statuses["after"] = [429]
    assert faults_of(run) == ["after: answers [429]"]


def test_any_of_several_outcomes_will_do() -> None:
    run = run_of({"status": [200], "booked_usd": "1"})
    run.case = MoneyCase("case", "", (), (*run.case.right, {"status": [200]}), {}, {}, None)
    assert faults_of(run) == []
