"""Budgets over a gateway: asked before, entered by name, in force, and taken back."""

import pytest

from dashboard.sections import budget_form
from ledger.budgets.states import budget_states
from ledger.identity.people import DashboardRole

FAY, JOE = "fay@example.com", "joe@example.com"
NEW, NAME = budget_form.NEW, "team:search@month"


@pytest.fixture
def looking(page_as):
    def look(person: str | None = FAY, role: DashboardRole = DashboardRole.FINANCE):
        return page_as("budgets", person, role)

    return look


def limits(gateway) -> dict[str, int]:
    with gateway.engine.connect() as connection:
        found = budget_states(connection, 2 * 10**15)
    return {state.account: state.line.limit_pusd // 10**12 for state in found}


def fill(test, usd: float, scope: str = "team:search"):
    test.text_input(key=f"budgets-scope-{NEW}").set_value(scope)
    test.number_input(key=f"budgets-usd-{NEW}").set_value(usd)
    test.run()
    test.button(key="budgets-enter").click().run()
    assert not test.exception
    return test


def test_a_budget_is_asked_entered_changed_and_ended_by_name(gateway, looking, text_of) -> None:
    test = fill(looking(), 50)
    assert "+team:search: $50.00 a month, hard stop" in test.code[0].value
    assert limits(gateway) == {}, "the control: nobody has said yes"
    test.button(key="budgets-yes").click().run()
    assert test.success[0].value == f"The budget {NAME} is entered, by {FAY}."
    assert limits(gateway) == {NAME: 50}
    shown = [frame.value.to_dict("records") for frame in test.dataframe]
    assert shown[0][0]["entered by"] == FAY
    assert (shown[1][0]["entered"], shown[1][0]["in the file"]) == ("$50.00", "none")
    test.selectbox(key="budgets-which").set_value(NAME).run()
    test.number_input(key=f"budgets-usd-{NAME}").set_value(75.0).run()
    test.button(key="budgets-enter").click().run()
    assert "-team:search: $50.00" in test.code[0].value
    test.button(key="budgets-yes").click().run()
    assert limits(gateway) == {NAME: 75}
    test.selectbox(key="budgets-which").set_value(NAME).run()
    test.button(key="budgets-end").click().run()
    test.button(key="budgets-yes").click().run()
    assert limits(gateway) == {}
    assert f"is ended, by {FAY}" in text_of(test).replace("\\", "")


def test_what_the_gateway_refuses_is_told_and_nothing_is_changed(gateway, looking) -> None:
    test = fill(looking(), 5, scope="teem:search")
    test.button(key="budgets-yes").click().run()
    assert "did you mean `team`?" in test.error[0].value
    test = fill(looking(JOE, DashboardRole.FINANCE), 9)
    test.button(key="budgets-yes").click().run()
    assert f"{JOE} does not have the scope `contracts:apply`" in test.error[0].value
    assert limits(gateway) == {}


def test_a_limit_that_cannot_be_is_said(looking) -> None:
    test = looking()
    test.text_input(key=f"budgets-scope-{NEW}").set_value("global")
    test.number_input(key=f"budgets-usd-{NEW}").set_value(-3.0).run()
    assert "Limit, USD is 0 to" in test.error[0].value
    assert test.button(key="budgets-enter").disabled


def test_others_are_told_the_command(looking, text_of) -> None:
    test = looking(None, DashboardRole.ADMIN)
    assert "breakeven budgets enter SCOPE USD" in text_of(test)
    assert not [button for button in test.button if button.key.startswith("budgets")]
