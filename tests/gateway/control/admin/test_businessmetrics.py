"""Business metrics over HTTP: entered and corrected, refused by field, withdrawn."""

import pytest

FOR = "/v1/organization/business-metrics"
LINE = {"day": "2026-11-02", "value": 120}


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("counts", scopes=("contracts:apply", "usage:all")).token


def test_a_metric_is_entered_corrected_and_withdrawn(stack, finance) -> None:
    lines = [LINE, {**LINE, "team": "search"}, {**LINE, "tag": "product=support"}]
    for value in (120, 7):
        given = {"name": "tickets", "lines": [{**line, "value": value} for line in lines]}
        answer = stack.post(FOR, given, finance)
        assert (answer.status_code, answer.json()["lines"]) == (200, 3)
    (found,) = stack.get(FOR, finance).json()["data"]
    assert [(line["team"], line["tag"], line["value"]) for line in found["lines"]] == [
        (None, None, "7"), (None, "product=support", "7"), ("search", None, "7"),
    ]  # fmt: skip
    name = {"name": "tickets"}
    assert stack.post(f"{FOR}/withdraw", name, finance).status_code == 200
    assert stack.get(FOR, finance).json()["data"] == []
    assert stack.post(f"{FOR}/withdraw", name, finance).status_code == 400


@pytest.mark.parametrize(
    ("given", "param", "said"),
    [
        ({"name": "a/b", "lines": [LINE]}, "name", "letters, digits"),
        ({"name": "a", "lines": []}, "lines", "1 to 2000"),
        ({"name": "a", "lines": [{**LINE, "tag": "x"}]}, "lines", "NAME=VALUE"),
        ({"name": "a", "lines": [{**LINE, "value": -1}]}, "lines", "a number from 0 on"),
        ({"name": "a", "lines": [{**LINE, "value": "1e-99999"}]}, "lines", "9 decimals"),
        ({"name": "a", "lines": [{**LINE, "value": "0e-99999"}]}, "lines", "9 decimals"),
        ({"name": "a", "lines": [{**LINE, "value": "1e16"}]}, "lines", "at most 1,000"),
        ({"name": "a", "lines": [{**LINE, "team": "a\0"}]}, "lines", ""),
        ({"name": "a", "lines": [LINE, LINE]}, "lines", "line 2: 2026-11-02 stands there twice"),
    ],
)
def test_what_is_wrong_names_its_field(stack, finance, given, param, said) -> None:
    answer = stack.post(FOR, given, finance)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert said in error["message"]


def test_who_may_only_look_enters_nothing(stack) -> None:
    looks = stack.key("looks-metrics", scopes=("usage:all", "contracts")).token
    assert stack.post(FOR, {"name": "a", "lines": [LINE]}, looks).status_code == 403
    assert stack.get(FOR, looks).status_code == 200
