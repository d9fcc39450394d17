"""Learned estimates over HTTP: shown, and forgotten by every worker under the key's name."""

import re

import pytest

PATH = "/v1/organization/estimates"


@pytest.fixture(scope="module")
def operator(stack):
    return stack.key("estimates", scopes=("operations:apply",))


def listed(stack, operator, query: str = "") -> list[dict]:
    answer = stack.get(PATH + query, operator.token)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def observed(stack) -> float:
    """How many observations the host counts, 0 before the first."""
    named = r'^breakeven_estimator_observations_total{estimator="bytes_per_token"} (\S+)$'
    counted = re.search(named, stack.get("/metrics").text, re.MULTILINE)
    return 0.0 if counted is None else float(counted[1])


def test_what_is_learned_is_shown_and_forgotten(stack, operator, patiently) -> None:
    assert stack.chat("api", max_tokens=3).status_code == 200
    patiently(lambda: listed(stack, operator))  # so that the reset is seen to be carried out
    stack.post(PATH + "/reset", {}, operator.token)  # other files ask this host, too
    patiently(lambda: listed(stack, operator) == [])
    before = observed(stack)
    for model in ("api", "own"):
        assert stack.chat(model, max_tokens=3).status_code == 200
    found = patiently(
        lambda: (
            [known["observations"] for known in listed(stack, operator)] == [1, 1]
            and listed(stack, operator)
        )
    )
    assert [(known["model"], known["team"]) for known in found] == [
        ("api", "search"), ("own", "search"),
    ]  # fmt: skip
    assert all(known["template_tokens"] == 64 for known in found)
    assert all(1.0 <= known["context_margin"] <= 1.5 for known in found)
    assert [known["model"] for known in listed(stack, operator, "?model=own")] == ["own"]
    assert listed(stack, operator, "?team=support") == []
    given = {"model": "own", "team": "search", "note": "a lie"}
    said = stack.post(PATH + "/reset", given, operator.token).json()
    assert (said["keys"], said["by"], said["note"]) == (1, f"key:{operator.key_id}", "a lie")
    patiently(lambda: [known["model"] for known in listed(stack, operator)] == ["api"])
    line = 'breakeven_estimator_value{estimator="bytes_per_token",statistic="keys"} '
    patiently(lambda: line + "1.0" in stack.get("/metrics").text)  # a worker tells now and then
    patiently(lambda: observed(stack) == before + 2)


def test_a_reset_is_in_no_list_of_what_is_held_over_policies(stack, operator) -> None:
    stack.post(PATH + "/reset", {}, operator.token)
    assert stack.get("/v1/organization/routes", operator.token).json()["data"] == []


def test_it_takes_the_right_to_operate(stack) -> None:
    reader = stack.key("estimates-reader", scopes=("operations",))
    assert stack.get(PATH, reader.token).status_code == 200
    assert stack.post(PATH + "/reset", {}, reader.token).status_code == 403
    assert stack.get(PATH).status_code == 403


def test_an_unknown_model_is_refused(stack, operator) -> None:
    answer = stack.post(PATH + "/reset", {"model": "none"}, operator.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "model")


def test_targets_are_shown_and_forgotten(stack, operator, patiently) -> None:
    def known(query: str = "") -> list[dict]:
        answer = stack.get(PATH + "/targets" + query, operator.token)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    target = stack.chat("api", max_tokens=3).headers["x-breakeven-backend"]
    of_it = f"?target={target}"  # other files ask this host, too
    patiently(lambda: known(of_it))
    stack.post(PATH + "/reset", {"target": target}, operator.token)
    patiently(lambda: known(of_it) == [])  # so that no earlier reset is carried out below
    assert stack.chat("api", max_tokens=3).status_code == 200
    (found,) = patiently(lambda: [told for told in known(of_it) if told["observations"]])
    assert found["tokens_per_s"] > 0
    assert (found["overrun_tokens"], found["hides_reasoning"]) == (0, False)
    assert (found["picture_factor"], found["sound_factor"], found["context_tokens"]) == (0, 0, 0)
    assert known("?target=none/m") == []
    given = {"target": found["target"], "note": "a lie"}
    said = stack.post(PATH + "/reset", given, operator.token).json()
    assert (said["keys"], said["target"], said["team"]) == (1, found["target"], None)
    patiently(lambda: known(of_it) == [])
    assert (
        stack.post(PATH + "/reset", given | {"team": "search"}, operator.token).status_code == 400
    )
