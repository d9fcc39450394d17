"""Engines over HTTP: what they do, drained and resumed; nobody restarts one that still serves."""

import pytest

FOR = "/v1/organization/engines"


@pytest.fixture(scope="module")
def operator(stack) -> str:
    return stack.key("engines", scopes=("operations:apply",)).token


def test_each_engine_is_shown(stack, operator) -> None:
    main, embed = stack.get(FOR, operator).json()["data"]
    assert (main["engine"], main["state"], main["managed"]) == ("pool:main/0", "healthy", False)
    assert (embed["override"], embed["held"]) == (None, False)
    assert main["upkeep"] is None
    assert main["round_trip_us"] > 0  # of a real connection, on this machine
    assert main["far"] is False


def test_a_drain_is_held_until_it_is_resumed(stack, operator) -> None:
    (one,) = stack.post(FOR + "/drain", {"engine": "pool:main"}, operator).json()["data"]
    assert one["override"].startswith("disabled by key:")
    done = stack.post(FOR + "/resume", {"engine": "pool:main"}, operator).json()
    assert done == {"engine": "pool:main", "drained": False}
    assert stack.get(FOR, operator).json()["data"][0]["override"] is None


@pytest.mark.parametrize("verb", ["drain", "restart"])
def test_an_unknown_engine_is_named_with_those_there_are(stack, operator, verb) -> None:
    answer = stack.post(f"{FOR}/{verb}", {"engine": "pool:none"}, operator)
    assert answer.status_code == 400
    assert "there are pool:main/0, pool:embed/0" in answer.json()["error"]["message"]


def test_what_was_not_started_here_is_not_restarted_here(stack, operator) -> None:
    answer = stack.post(FOR + "/restart", {"engine": "pool:main"}, operator)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "engine")
    assert "restart it where it runs" in answer.json()["error"]["message"]
