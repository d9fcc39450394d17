"""A past request out of the ledger; what is told of it: `tests/gateway/cli/test_policy.py`."""

from gateway.decisions.recorded import recorded
from ledger.overrides import DISABLED, NOTHING, Override, store_override


def test_a_request_is_there_for_its_own_team_alone(stack) -> None:
    answer = stack.chat("chat", max_tokens=4)
    (row,) = stack.settled(answer)
    name = answer.headers["x-request-id"]
    found = recorded(stack.reader, name)
    assert found is not None
    assert [one["attempt_id"] for one in found.attempts] == [row["attempt_id"]]
    assert recorded(stack.reader, name, row["team_id"]) == found
    assert recorded(stack.reader, name, "another") is None
    assert recorded(stack.reader, "req_x") is None


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
    found = patiently(lambda: recorded(stack.reader, name))
    (document,) = found.attempts
    assert (document["status"], document["http_status"]) == ("refused", 503)
    assert {one["reason"] for one in document["decision"]["candidates"]} == {"disabled"}
    assert found.lines[0].startswith(f"{name} refused: disabled (503), policy ")
    assert any("pool:main/0: disabled" in line for line in found.lines)
    assert recorded(stack.reader, name, "another") is None
    patiently(lambda: stack.chat("own", max_tokens=3).status_code == 200)
