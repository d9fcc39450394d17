"""A try in sentences: enough for whoever is woken at three o'clock."""

from types import SimpleNamespace

import pytest

from gateway.control.decisions.explanation_text import COLUMNS, document, explain_attempt

ROW = {
    "attempt_id": "req_1.1", "target": "pool:a/0", "status": "finished", "attempt_no": 1,
    "opened_us": 1_795_000_000_000_000, "model": "chat", "team_id": "search", "key_id": "key_1",
    "tags": None, "policy": "plain", "reason": "cheapest", "spill_reason": None,
    "http_status": 200, "error": None, "ttft_us": 120_000, "duration_us": 490_000,
    "slo_met": True, "cost_pusd": 1_230_000_000, "basis": "reported", "read_tokens": 800,
    "cached_tokens": 500, "written_tokens": 64,
    "claimed_pusd": None,
}  # fmt: skip


def row(**changes: object) -> SimpleNamespace:
    return SimpleNamespace(**{**ROW, **changes})


def test_who_asked_why_there_what_came_and_for_how_much() -> None:
    assert explain_attempt(row(), None) == [
        "asked 2026-11-18 11:06:40 UTC for chat by key key_1 of team search",
        "went there by policy plain: cheapest (least dollars and SLO penalty of what was feasible)",
        "finished (200) after 490 ms, the first token after 120 ms, within its SLO",
        "800 tokens in (500 cached), 64 out: $0.00123, reported",
    ]


def test_a_spilled_one_names_what_the_own_engine_lacked() -> None:
    went = explain_attempt(row(target="openai/gpt-4o-mini", spill_reason="ttft"), None)[1]
    assert went.endswith("; no own engine: ttft (the first token would have come too late)")


def test_a_further_try_names_the_failure_of_the_one_before() -> None:
    before = row(target="alpha/m", status="upstream_error", error="server_error", http_status=500)
    said = explain_attempt(row(attempt_no=2, reason="costlier"), before)
    assert said[0] == (
        "went there by policy plain: the next in order, for alpha/m failed: "
        "upstream_error: server_error (500)"
    )
    assert not any(line.startswith("asked") for line in said)


def test_a_line_of_a_batch_names_it_and_tags_are_told() -> None:
    (asked, *_) = explain_attempt(row(tags={"batch": "batch_7", "app": "web"}), None)
    assert asked.endswith("of team search, app=web, a line of batch_7")


def test_of_one_under_way_only_its_beginning_is_told() -> None:
    still = {"status": None, "duration_us": None, "http_status": None, "cost_pusd": None}
    assert len(explain_attempt(row(**still), None)) == 2


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"slo_met": False}, 2, "its SLO missed"),
        ({"slo_met": None, "ttft_us": None}, 2, "finished (200) after 490 ms"),
        ({"cost_pusd": None}, 3, "64 out: unpriced, reported"),
        (
            {"claimed_pusd": 5_500_000_000},
            3,
            "$0.00123, reported; its provider claims $0.0055, in dispute",
        ),
        ({"reason": "sticky"}, 1, "sticky (its session goes on where it was)"),
        ({"reason": "costlier"}, 1, "plain: costlier"),
    ],
)
def test_each_circumstance_has_its_words(changes, place, said) -> None:
    assert explain_attempt(row(**changes), None)[place].endswith(said)


def test_programs_get_the_same() -> None:
    told = document(row())
    assert (told["cost_usd"], told["input_tokens"], told["tags"]) == ("0.001230000000", 800, {})
    assert told["claimed_usd"] is None
    assert document(row(claimed_pusd=10**12))["claimed_usd"] == "1.000000000000"
    assert {column.key for column in COLUMNS} - {"attempt_no"} <= ROW.keys()
