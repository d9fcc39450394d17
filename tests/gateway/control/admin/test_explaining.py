"""`GET /v1/organization/decisions`: a past request, a supposed one, and for whom."""

import pytest

PATH = "/v1/organization/decisions"


@pytest.fixture(scope="module")
def tokens(stack) -> dict[str, str]:
    return {
        "all": stack.key("explains all", scopes=("usage:all",)).token,
        "own": stack.key("explains own", team="search", scopes=("usage", "inference")).token,
        "other": stack.key("explains other", team="ads", scopes=("usage",)).token,
    }


@pytest.fixture
def asked(stack, tokens) -> str:
    answer = stack.chat("chat", tokens["own"], max_tokens=4)
    stack.settled(answer)
    return str(answer.headers["x-request-id"])


def test_a_past_request_is_decided_again(stack, tokens, asked) -> None:
    found = stack.get(f"{PATH}?request_id={asked}", tokens["own"]).json()
    (attempt,) = found["attempts"]
    assert attempt["again"]["identical"] is True
    assert attempt["decision"]["candidates"]
    assert any("decided again" in line for line in found["lines"])
    assert stack.get(f"{PATH}?request_id={asked}", tokens["all"]).json() == found


def test_another_teams_request_is_not_there(stack, tokens, asked) -> None:
    refused = stack.get(f"{PATH}?request_id={asked}", tokens["other"])
    missing = stack.get(f"{PATH}?request_id=req_x", tokens["other"])
    assert (refused.status_code, missing.status_code) == (404, 404)
    assert refused.json()["error"]["code"] == "request_not_found"
    assert refused.text.replace(asked, "req_x") == missing.text.replace(asked, "req_x")
    assert stack.get(f"{PATH}?request_id={asked}", stack.token).status_code == 403


def test_a_supposed_request_of_ones_own_team(stack, tokens) -> None:
    found = stack.get(f"{PATH}?model=chat&prompt_tokens=100", tokens["own"]).json()
    assert found["decision"]["chosen"] == "pool:main/0"
    assert stack.get(f"{PATH}?model=chat&team=search", tokens["all"]).status_code == 200
    assert stack.get(f"{PATH}?model=chat&team=ads", tokens["own"]).status_code == 403
    assert stack.get(f"{PATH}?model=nothing", tokens["own"]).status_code == 404


@pytest.mark.parametrize("query", ["", "?model=chat&request_id=x", "?model=chat&prompt_tokens=0"])
def test_what_cannot_be_told_names_its_member(stack, tokens, query) -> None:
    refused = stack.get(PATH + query, tokens["own"])
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] in ("request_id", "prompt_tokens")
