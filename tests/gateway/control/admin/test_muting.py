"""A series is muted and heard again over HTTP, by name; who may not is refused."""

import pytest

FOR = "/v1/organization/anomalies"
SERIES = {"by": "team", "name": "search"}


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("mutes", scopes=("contracts:apply", "usage:all"))


def test_a_series_is_muted_and_heard_again(stack, finance) -> None:
    assert stack.post(FOR + "/mute", SERIES, finance.token).status_code == 200
    (found,) = stack.get(FOR + "/muted", finance.token).json()["data"]
    assert (found["name"], found["by"]) == ("team/search", f"key:{finance.key_id}")
    assert stack.post(FOR + "/unmute", SERIES, finance.token).status_code == 200
    assert stack.get(FOR + "/muted", finance.token).json()["data"] == []
    answer = stack.post(FOR + "/unmute", SERIES, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "name")


def test_who_may_only_look_mutes_nothing(stack) -> None:
    looks = stack.key("hears", scopes=("usage:all", "contracts")).token
    assert stack.post(FOR + "/mute", SERIES, looks).status_code == 403
    assert stack.get(FOR + "/muted", looks).status_code == 200
