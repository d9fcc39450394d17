"""Scenarios over a gateway: saved as they were turned, replaced after a question, shared."""

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import viewer_identity
from dashboard.sections import saved_scenarios
from dashboard.sections.planform import is_of_plan
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.manual_entries import SCENARIO, ManualEntry

FAY = "fay@example.com"


def section(url: str) -> None:
    """Runs inside Streamlit's test harness: the section alone."""
    from dashboard import viewer_identity  # noqa: PLC0415  (the harness runs it as a script)
    from dashboard.data import reads  # noqa: PLC0415  (the harness runs it as a script)
    from dashboard.sections import saved_scenarios  # noqa: PLC0415  (the harness runs it as a script)

    view = reads.DashboardView(
        url, "30 d", None, reads.rounded_now_us(0), who=lambda: viewer_identity.AT_THIS_MACHINE
    )
    saved_scenarios.scenarios(view, "breakeven", lambda item: item.startswith("x-"))


@pytest.fixture
def drawn(gateway, monkeypatch):
    monkeypatch.setenv(GATEWAY, gateway.address)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(gateway.state / KEY_FILE))

    def draw(name: str | None = FAY, **turned: str) -> AppTest:
        monkeypatch.setattr(viewer_identity, "AT_THIS_MACHINE", Viewer(name, DashboardRole.FINANCE))
        test = AppTest.from_function(section, args=(gateway.url,), default_timeout=60)
        for key, value in turned.items():
            test.query_params[key.replace("_", "-")] = value
        return test.run()

    return draw


def save(test: AppTest, name: str) -> AppTest:
    test.text_input(key="scenario-breakeven-name").set_value(name).run()
    return test.button(key="scenario-breakeven-save").click().run()


def listed(test: AppTest) -> str:
    return " ".join(text.value for text in test.markdown)


def test_it_is_saved_replaced_after_a_question_and_taken_off(drawn) -> None:
    test = save(drawn(x_rate="2.5", x_gpus="4", team="search"), "two L40S")
    assert test.success[0].value == f"two L40S is saved, by {FAY}."
    assert "[two L40S](breakeven?x-rate=2.5&x-gpus=4), 2 turned" in listed(test)
    again = save(drawn(x_rate="3"), "two L40S")
    assert "x-rate=2.5" in listed(again), "the control: nobody has said yes"
    again.button(key="scenario-breakeven-yes").click().run()
    assert "(breakeven?x-rate=3), 1 turned" in listed(again)
    again.selectbox(key="scenario-breakeven-gone").set_value("two L40S").run()
    again.button(key="scenario-breakeven-drop").click().run()
    again.button(key="scenario-breakeven-yes").click().run()
    assert "two L40S" not in listed(again)


def test_what_nobody_turned_is_not_saved(drawn) -> None:
    test = drawn(team="search")
    test.text_input(key="scenario-breakeven-name").set_value("nothing").run()
    assert test.button(key="scenario-breakeven-save").disabled


def test_who_has_no_name_sees_the_list_alone(drawn) -> None:
    assert not drawn(None, x_rate="3").button


def test_an_address_keeps_odd_values_whole() -> None:
    says = {"page": "plan", "turned": {"rate-H100 & more": "2", "gpu": "A/B"}}
    entry = ManualEntry(1, SCENARIO + "odd", says, 0, 0, "ada")
    assert saved_scenarios.link("plan", entry) == "plan?rate-H100%20%26%20more=2&gpu=A%2FB"
    of_plan = ("gpu", "gpu-model", "rate-L4", "speed-L4-8B", "duty-100")
    assert [is_of_plan(name) for name in (*of_plan, "team")] == [True] * 5 + [False]
