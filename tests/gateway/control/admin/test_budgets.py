"""Budgets over HTTP: entered, changed and ended by name, and every host goes by them."""

import pytest

FOR = "/v1/organization/budgets"
SEARCH = {"scope": "team:search", "period": "month"}


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("limits", scopes=("contracts:apply", "budgets:all", "changes"))


def line(stack, finance, name: str) -> dict:
    found = stack.get(FOR + "/terms", finance.token).json()["data"]
    return next((item for item in found if item["budget"] == name), {})


def test_a_budget_of_the_file_shows_both_limits_and_who_changed_it(
    stack, finance, patiently
) -> None:
    given = {**SEARCH, "usd": "40.25", "alert_at": [0.5, 1], "note": "agreed on 2 November"}
    made = stack.post(FOR, given, finance.token)
    assert made.status_code == 200, made.text
    shown = line(stack, finance, "team:search@month")
    assert shown["in_force"]["limit_usd"] == "40.250000000000"
    assert shown["configured"]["limit_usd"] == "50.000000000000"
    who = f"key:{finance.key_id}"
    assert (shown["entered"]["by"], shown["entered"]["note"]) == (who, "agreed on 2 November")

    def entered() -> list:
        found = stack.get("/v1/organization/changes?limit=100", finance.token).json()["data"]
        return [item for item in found if (item["register"], item["actor"]) == ("entered", who)]

    assert patiently(entered), "the log of changes"
    assert stack.post(FOR + "/withdraw", SEARCH, finance.token).status_code == 200
    shown = line(stack, finance, "team:search@month")
    assert (shown["in_force"]["limit_usd"], shown["entered"]) == ("50.000000000000", None)


def test_what_is_entered_is_kept_by_the_workers_until_it_is_ended(
    stack, finance, patiently
) -> None:
    asks = stack.key("spends")
    scope = {"scope": f"key:{asks.key_id}", "period": "day"}
    assert stack.chat(token=asks.token).status_code == 200, "the control"
    given = {**scope, "usd": "0.000000000001", "hard": True}
    assert stack.post(FOR, given, finance.token).status_code == 200
    assert patiently(lambda: stack.chat(token=asks.token).status_code == 429)
    assert stack.post(FOR + "/end", scope, finance.token).status_code == 200
    assert patiently(lambda: stack.chat(token=asks.token).status_code == 200)
    assert line(stack, finance, f"key:{asks.key_id}@day")["entered"]["ended"] is True


@pytest.mark.parametrize(
    ("given", "param", "words"),
    [
        ({"usd": "-1"}, "usd", ""),
        ({"usd": "NaN"}, None, ""),
        ({"scope": "teem:search"}, "scope", "did you mean `team`?"),
        ({"scope": "model:*"}, "scope", "would limit no key"),
        ({"scope": "team:search "}, "scope", "remove the blank"),
        ({"scope": "provider:nobody"}, "scope", "no provider named"),
        ({"period": "week"}, None, ""),
        ({"timezone": "Mars/Olympus"}, "timezone", "is not an IANA time zone"),
        ({"alert_at": [-1]}, "alert_at", ""),
        ({"alert_at": [1e-9]}, "alert_at", "the least share is 0.000001"),
        ({"alert_at": [0.5] * 17}, "alert_at", "at most 16"),
    ],
)
def test_what_is_no_budget_names_its_member(stack, finance, given, param, words) -> None:
    answer = stack.post(FOR, {**SEARCH, "usd": "5", **given}, finance.token)
    error = answer.json()["error"]
    assert answer.status_code == 400, answer.text
    assert words in error["message"]
    assert param in (None, error["param"])


@pytest.mark.parametrize("way", ["/end", "/withdraw"])
def test_what_is_not_there_cannot_be_ended_or_taken_back(stack, finance, way: str) -> None:
    gone = {"scope": "team:nobody", "period": "day"}
    answer = stack.post(FOR + way, gone, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "scope")


def test_who_may_only_look_changes_nothing(stack) -> None:
    looks = stack.key("sees budgets", scopes=("budgets:all", "contracts")).token
    assert stack.get(FOR + "/terms", looks).status_code == 200
    for path in ("", "/end", "/withdraw"):
        given = {**SEARCH, "usd": "1"} if not path else SEARCH
        assert stack.post(FOR + path, given, looks).status_code == 403
    own_team = stack.key("sees one team", scopes=("budgets",)).token
    assert stack.get(FOR + "/terms", own_team).status_code == 403
    assert stack.get("/v1/organization/budgets", own_team).status_code == 200, "the control"


@pytest.mark.parametrize(
    ("name", "status"),
    [("fay@example.com", 200), ("joe@example.com", 403), ("eve@example.com", 403)],
)
def test_people_change_budgets_by_their_role(asked_by, name: str, status: int) -> None:
    given = {"scope": "team:tried", "usd": "3", "period": "day"}
    assert asked_by(name, FOR, given).status_code == status
