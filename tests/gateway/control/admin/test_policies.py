"""The verbs of `breakeven policy` over HTTP: who may, what is told, and what is then in force."""

import pytest

PATH = "/v1/organization/policies"
CALM = "policies: [{name: calm, slo: {ttft_ms: 5000}}]"
BAD = "policies: [{name: calm, match: {when: 'prompt_tokens >'}}]"


@pytest.fixture(scope="module")
def tokens(stack) -> dict[str, str]:
    return {
        "reader": stack.key("policies reader", scopes=("policies",)).token,
        "writer": stack.key("policies writer", scopes=("policies:apply",), user="ann").token,
        "other": stack.key("policies other", scopes=("usage:all",)).token,
    }


def test_each_verb_asks_for_its_scope(stack, tokens) -> None:
    given = {"policies": CALM}
    asks = [
        (lambda token: stack.get(PATH, token), "reader"),
        (lambda token: stack.get(PATH + "/history", token), "reader"),
        (lambda token: stack.post(PATH + "/check", given, token), "reader"),
        (lambda token: stack.post(PATH + "/diff", given, token), "reader"),
        (lambda token: stack.post(PATH + "/apply", {"policies": BAD}, token), "writer"),
        (lambda token: stack.post(PATH + "/rollback", {"set": 99}, token), "writer"),
    ]
    for ask, least in asks:
        assert ask(tokens["other"]).status_code == ask(stack.token).status_code == 403
        assert ask("gw_0_0").status_code == 401
        assert ask(tokens["reader"]).status_code == (403 if least == "writer" else 200)
        assert ask(tokens["writer"]).status_code == (400 if least == "writer" else 200)


def test_a_set_goes_into_force_and_back(stack, tokens, patiently) -> None:
    writer = tokens["writer"]
    before = stack.get(PATH, writer).json()
    assert (before["set"], before["by"], before["fault"]) == (0, "the configuration file", None)
    changed = stack.post(PATH + "/diff", {"policies": CALM}, writer).json()["changes"]
    assert "+- name: calm" in changed
    put = {"policies": CALM, "note": "calmer", "follows": 0}
    answer = stack.post(PATH + "/apply", put, writer).json()
    assert answer == {"set": 1, "changes": changed, "version": answer["version"], "by": "ann"}
    patiently(lambda: stack.chat("own").headers["x-breakeven-policy"] == "calm")
    late = stack.post(PATH + "/apply", {**put, "policies": "policies: [{name: x}]"}, writer)
    assert (late.status_code, late.json()["error"]["code"]) == (409, "policies_moved")
    again = stack.post(PATH + "/apply", {"policies": CALM}, writer).json()
    assert (again["set"], again["changes"]) == (1, [])
    back = stack.post(PATH + "/rollback", {"to_file": True}, writer).json()
    assert back["set"] == 2
    patiently(lambda: stack.chat("own").headers["x-breakeven-policy"] == "plain")
    page = stack.get(PATH + "/history?limit=5", writer).json()["data"]
    assert [(item["set"], item["by"], item["note"]) for item in page] == [
        (2, "ann", None), (1, "ann", "calmer"),
    ]  # fmt: skip


def test_faults_are_told_by_line(stack, tokens) -> None:
    told = stack.post(PATH + "/check", {"policies": BAD}, tokens["reader"]).json()
    assert told["valid"] is False
    assert "condition at 1:16" in str(told["faults"])
    told = stack.post(PATH + "/check", {"policies": CALM}, tokens["reader"]).json()
    assert len(told["version"]) >= 8
    assert told == {
        "valid": True, "faults": [], "policies": ["calm: every request"],
        "version": told["version"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "body", [{}, {"policies": 3}, {"policies": CALM, "more": 1}, [], {"policies": "x", "note": 5}]
)
def test_a_body_that_is_none_is_refused(stack, tokens, body) -> None:
    answer = stack.post(PATH + "/apply", body, tokens["writer"])
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_it_is_in_the_openapi_document(stack) -> None:
    paths = stack.get("/openapi.json").json()["paths"]
    verbs = {path.removeprefix(PATH) for path in paths if path.startswith(PATH)}
    assert verbs == {"", "/check", "/diff", "/simulate", "/apply", "/history", "/rollback"}
    said = paths[PATH + "/apply"]["post"]
    assert said["security"]
    assert said["requestBody"]["content"]["application/json"]["schema"]["required"] == ["policies"]
