"""A past request out of the ledger; what is told of it: `tests/gateway/cli/test_policy.py`."""

from gateway.decisions.recorded import recorded


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
