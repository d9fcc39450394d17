"""Operators' verbs over HTTP: the same effect as on the host, under the key's name."""

import pytest

FOR = "/v1/organization"


@pytest.fixture(scope="module")
def operator(stack):
    return stack.key("overrides", scopes=("operations:apply",))


def test_a_target_is_taken_out_and_put_back(stack, operator, patiently) -> None:
    given = {"target": "pool:main", "lasts": "30m", "note": "a fan"}
    said = stack.post(FOR + "/targets/disable", given, operator.token).json()
    (item,) = said["overrides"]
    assert (item["target"], item["says"], item["by"], item["note"]) == (
        "pool:main", "disabled", f"key:{operator.key_id}", "a fan",
    )  # fmt: skip
    assert "own" in said["unserved"]
    patiently(lambda: stack.chat("own").status_code == 503)
    listed = stack.get(FOR + "/targets", operator.token).json()
    assert "pool:main" in listed["targets"]
    assert listed["overrides"] == stack.get(FOR + "/routes", operator.token).json()["data"]
    again = stack.post(FOR + "/targets/enable", {"target": "pool:main"}, operator.token).json()
    assert (again["overrides"][0]["says"], again["unserved"]) == ("nothing", [])
    patiently(lambda: stack.chat("own").status_code == 200)


def test_a_route_is_forced_and_released(stack, operator, patiently) -> None:
    said = stack.post(FOR + "/routes/force", {"to": "api", "model": "chat"}, operator.token)
    assert said.json()["overrides"][0]["model"] == "chat"
    patiently(lambda: stack.chat("chat").headers["x-breakeven-backend"] == "alpha/m")
    stack.post(FOR + "/routes/release", {"model": "chat"}, operator.token)
    assert stack.get(FOR + "/routes", operator.token).json()["data"] == []


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (
            "/targets/disable",
            {"target": "pool:none"},
            "There is no target `pool:none`; the targets are",
        ),
        ("/targets/disable", {"target": "alpha", "lasts": "a while"}, "Invalid duration `a while`"),
        ("/targets/enable", {"target": "alpha"}, "Target `alpha` is not disabled"),
        ("/routes/force", {"to": "own", "model": "api"}, "`api` has no own target"),
        ("/routes/release", {}, "The route of all models is not forced"),
    ],
)
def test_what_cannot_be_done_is_said(stack, operator, path, body, words) -> None:
    answer = stack.post(FOR + path, body, operator.token)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (400, True)
