"""Projects, scenarios and currencies: entered by name, listed, replaced, taken back."""

import pytest

FOR = "/v1/organization"


@pytest.fixture(scope="module")
def finance(stack):
    scopes = ("contracts:apply", "invoices:apply", "prices:apply", "usage:all")
    return stack.key("entries", scopes=scopes)


def listed(stack, finance, noun: str) -> list[tuple]:
    found = stack.get(f"{FOR}/{noun}", finance.token).json()["data"]
    return [(finding["name"], finding["says"], finding["by"]) for finding in found]


def test_a_project_is_a_teams_until_it_is_nobodys(stack, finance) -> None:
    by = f"key:{finance.key_id}"
    for team in ("search", "ads"):
        given = {"provider": "alpha", "project": "proj 1/2", "team": team}
        assert stack.post(FOR + "/projects", given, finance.token).status_code == 200
    assert listed(stack, finance, "projects") == [("alpha/proj 1/2", {"team": "ads"}, by)]
    nobody = {"provider": "alpha", "project": "proj 1/2"}
    stack.post(FOR + "/projects", nobody, finance.token)
    assert listed(stack, finance, "projects") == []


def test_a_scenario_is_saved_over_and_dropped(stack, finance) -> None:
    for turned in ({"x-rate": "2.5"}, {"x-rate": "3", "x-gpus": "4"}):
        given = {"name": "two L40S, Nov.", "page": "breakeven", "turned": turned}
        assert stack.post(FOR + "/scenarios", given, finance.token).status_code == 200
    ((name, says, _),) = listed(stack, finance, "scenarios")
    assert (name, says["turned"]) == ("two L40S, Nov.", {"x-rate": "3", "x-gpus": "4"})
    dropped = {"name": name}
    assert stack.post(FOR + "/scenarios/drop", dropped, finance.token).status_code == 200
    assert listed(stack, finance, "scenarios") == []
    again = stack.post(FOR + "/scenarios/drop", dropped, finance.token)
    assert (again.status_code, again.json()["error"]["param"]) == (400, "name")


def test_a_currencys_rate_has_a_day_and_a_source(stack, finance) -> None:
    given = {"currency": "EUR", "per_usd": "0.92130", "day": "2026-11-02", "source": "ECB"}
    assert stack.post(FOR + "/currencies", given, finance.token).status_code == 200
    ((name, says, _),) = listed(stack, finance, "currencies")
    assert (name, says) == ("EUR", {"per_usd": "0.9213", "day": "2026-11-02", "source": "ECB"})


RATE = {"currency": "EUR", "per_usd": "0.9", "day": "2026-11-02", "source": "ECB"}
SCENARIO = {"name": "a", "page": "plan", "turned": {}}


@pytest.mark.parametrize(
    ("noun", "given", "param"),
    [
        ("projects", {"provider": "nobody", "project": "p", "team": "t"}, "provider"),
        ("projects", {"provider": "alpha", "project": "", "team": "t"}, "project"),
        ("scenarios", {**SCENARIO, "name": "../x"}, "name"),
        ("scenarios", {**SCENARIO, "page": "../x"}, "page"),
        ("scenarios", {**SCENARIO, "turned": {f"x{n}": "1" for n in range(41)}}, "turned"),
        ("currencies", {**RATE, "currency": "USD"}, "currency"),
        ("currencies", {**RATE, "currency": "euro"}, "currency"),
        ("currencies", {**RATE, "currency": "EUX"}, "currency"),
        ("currencies", {**RATE, "per_usd": "0"}, "per_usd"),
        ("currencies", {**RATE, "per_usd": "Infinity"}, "per_usd"),
        ("currencies", {**RATE, "per_usd": "1E-9999999"}, "per_usd"),  # red before: stored as 0
        ("currencies", {**RATE, "per_usd": "1E-9999"}, "per_usd"),  # red before: as 10,000 digits
        ("currencies", {**RATE, "day": "2999-01-01"}, "day"),
    ],
)
def test_what_cannot_be_entered_names_its_member(stack, finance, noun, given, param) -> None:
    answer = stack.post(f"{FOR}/{noun}", given, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
