"""Asked before, done once, told afterwards; and who is shown how."""

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import admin_client, confirmation
from dashboard.data.reads import DashboardView
from dashboard.viewer import Viewer
from ledger.identity.people import DashboardRole


@pytest.mark.parametrize(
    ("viewer", "may"),
    [
        (Viewer("fay@example.com", DashboardRole.FINANCE), True),
        (Viewer("ada@example.com", DashboardRole.ADMIN), True),
        (Viewer("joe@example.com", DashboardRole.VIEWER), False),
        (Viewer("eve@example.com", DashboardRole.FINANCE, ("search",)), False),
        (Viewer(None, DashboardRole.ADMIN), False),
    ],
)
def test_finance_people_and_admins_with_a_name_may(monkeypatch, viewer: Viewer, *, may: bool):
    monkeypatch.setattr(admin_client, "desk", lambda who: who())
    view = DashboardView("sqlite://", "30 d", None, 0, who=lambda: viewer)
    assert (confirmation.desk_for(view) is not None) is may


def change() -> None:
    """Runs inside Streamlit's test harness: a change of two steps."""
    import streamlit as st  # noqa: PLC0415  (the harness runs this body as a script of its own)

    from dashboard import confirmation  # noqa: PLC0415  (as above)

    confirmation.show_outcome("rows")
    if st.button("Change it", key="start"):
        confirmation.request_confirmation("rows", 7)
    if confirmation.pending_change("rows") is None:
        return
    st.caption(f"of {confirmation.pending_change('rows')}")
    if confirmation.is_confirmed("rows", "Yes, change it"):
        if st.session_state.get("away"):
            confirmation.send_change("rows", st.session_state["away"], "/rows")
        st.session_state["changed"] = st.session_state.get("changed", 0) + 1
        confirmation.report_done("rows", "Changed.")


@pytest.fixture
def test():
    return AppTest.from_function(change, default_timeout=30).run()


def test_nothing_is_asked_before_somebody_wants_it(test) -> None:
    assert [button.key for button in test.button] == ["start"]


def test_yes_is_done_once_and_told_once(test) -> None:
    test.button(key="start").click().run()
    assert test.caption[0].value == "of 7"
    assert "changed" not in test.session_state, "the control: nobody has said yes"
    test.button(key="rows-yes").click().run()
    assert (test.session_state["changed"], test.success[0].value) == (1, "Changed.")
    assert [button.key for button in test.button] == ["start"]


def test_what_was_said_stays_until_the_next_change_or_another_page(test) -> None:
    """Pages refresh by themselves within five seconds: a refusal was gone before it was read."""
    test.button(key="start").click().run()
    test.button(key="rows-yes").click().run()
    for _ in range(3):
        assert test.run().success[0].value == "Changed."
    test.button(key="start").click().run()
    assert not test.run().success, "the next change has begun"


class AwayGateway:
    """A gateway that answers nothing, and may have done it or not."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def post(self, path: str) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            admin_client.AdminRefused("`rows` are 7.", 400, None),
            "Nothing was changed: `rows` are 7.",
        ),
        (admin_client.AdminUnavailable("It is away."), "It is away. Nothing was changed."),
        (
            admin_client.AdminUnavailable("It is slow.", heard=True),
            "may have been done all the same",
        ),
    ],
)
def test_what_was_not_done_says_why_beside_yes_and_no(test, error: Exception, said: str) -> None:
    test.session_state["away"] = AwayGateway(error)
    test.button(key="start").click().run()
    test.button(key="rows-yes").click().run()
    for _ in range(3):
        assert said in test.run().error[0].value
        assert "rows-yes" in [button.key for button in test.button], "to try it again"
    test.session_state["away"] = None
    test.button(key="rows-yes").click().run()
    assert (test.session_state["changed"], test.success[0].value) == (1, "Changed.")
    assert not test.error


def test_no_forgets_that_it_was_asked(test) -> None:
    test.button(key="start").click().run()
    test.button(key="rows-no").click().run()
    assert "changed" not in test.session_state
    assert [button.key for button in test.button] == ["start"]
