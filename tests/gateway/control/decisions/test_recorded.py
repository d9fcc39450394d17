"""A past request out of the ledger; what is told of it: `tests/gateway/cli/test_policy.py`."""

import re
from decimal import Decimal

from backends.ratelimit import Allowance, RateLimitHeaders
from gateway.control.decisions.recorded import read_recorded_decision
from ledger.overrides import DISABLED, NOTHING, Override, store_override


def test_a_request_is_there_for_its_own_team_alone(stack) -> None:
    answer = stack.chat("chat", max_tokens=4)
    (row,) = stack.settled(answer)
    name = answer.headers["x-request-id"]
    found = read_recorded_decision(stack.reader, name)
    assert found is not None
    assert [attempt["attempt_id"] for attempt in found.attempts] == [row["attempt_id"]]
    assert read_recorded_decision(stack.reader, name, row["team_id"]) == found
    assert read_recorded_decision(stack.reader, name, "another") is None
    assert read_recorded_decision(stack.reader, "req_x") is None


def test_a_refused_request_tells_why_each_target_was_out(stack, patiently) -> None:
    def say(says: str) -> None:
        given = Override(0, "target:pool:main", says, None, 1, "ann", None)
        store_override(stack.database, given)

    say(DISABLED)
    try:
        refused = patiently(
            lambda: (answer := stack.chat("own", max_tokens=3)).status_code == 503 and answer
        )
    finally:
        say(NOTHING)
    name = refused.headers["x-request-id"]
    found = patiently(lambda: read_recorded_decision(stack.reader, name))
    (document,) = found.attempts
    assert (document["status"], document["http_status"]) == ("refused", 503)
    assert {candidate["reason"] for candidate in document["decision"]["candidates"]} == {"disabled"}
    assert found.lines[0].startswith(f"{name} refused: disabled (503), policy ")
    assert any("pool:main/0: disabled" in line for line in found.lines)
    assert read_recorded_decision(stack.reader, name, "another") is None
    patiently(lambda: stack.chat("own", max_tokens=3).status_code == 200)


def test_a_budgets_refusal_tells_what_was_wanted_and_what_was_left(run_stack, patiently) -> None:
    """Which budget, the most that the request could have cost, what was left of how much, when."""
    budget = {"scope": "team:search", "usd": "0.0001", "period": "day", "hard": True}
    with run_stack(budgets=[budget]) as stack:
        answer = stack.chat("api", max_tokens=100, x="y" * 20_000)
        assert answer.status_code == 429
        found = patiently(
            lambda: read_recorded_decision(stack.reader, answer.headers["x-request-id"])
        )
    (document,) = found.attempts
    told = document["budget"]
    assert (told["scope"], Decimal(told["limit_usd"])) == ("team:search@day", Decimal("0.0001"))
    assert Decimal(told["bound_usd"]) > Decimal(told["room_usd"]) == Decimal("0.0001")
    assert told["until_us"] - told["since_us"] == 86_400 * 10**6
    pattern = (
        r"  budget team:search@day: it may cost up to \$0\.00\d+, \$0\.0001 of \$0\.0001 was left "
        r"\(since [\d-]{10} 00:00, until [\d-]{10} 00:00 UTC\)"
    )
    assert re.fullmatch(pattern, found.lines[1]), found.lines


def test_a_hold_that_found_no_room_is_told_likewise(run_stack, patiently) -> None:
    """There was room when it was planned; others held it."""
    budget = {"scope": "team:search", "usd": "0.002", "period": "day", "hard": True}
    with run_stack(budgets=[budget]) as stack:
        desk = stack.app.hot._dispatcher.admission.desk
        hold = stack.call(desk.hold("another", ["team:search"], 2 * 10**9 - 1))
        assert not hasattr(hold, "room_pusd"), "it is held"
        answer = stack.chat("api", max_tokens=100)
        assert answer.status_code == 429
        found = patiently(
            lambda: read_recorded_decision(stack.reader, answer.headers["x-request-id"])
        )
    (document,) = found.attempts
    assert Decimal(document["budget"]["room_usd"]) < Decimal(document["budget"]["bound_usd"])


def test_what_stood_in_line_says_so_and_for_how_long(run_stack, patiently) -> None:
    """It was told as time in the gateway, as if that were slow."""
    policy = {"name": "patient", "otherwise": "queue", "queue_ms": 20_000}
    with run_stack(policies=[policy]) as stack:
        row = stack.runtime.apis.index("alpha/m")
        full = RateLimitHeaders(Allowance(500, 0, 0.5))
        stack.app.hot._dispatcher.experience.record_rate_limit(row, full)
        answer = stack.chat("api", max_tokens=3)
        assert answer.status_code == 200
        stack.settled(answer)
        found = read_recorded_decision(stack.reader, answer.headers["x-request-id"])
    (document,) = found.attempts
    spans = {item["what"]: item["length_us"] for item in document["waterfall"]}
    assert spans["in line"] > spans["gateway"]
