"""Put in force and taken back: asked first, told afterwards, by admins with a name."""

import pytest

from dashboard.admin_client import AdminRefused
from ledger.identity.people import DashboardRole

NEW = "policies:\n- name: calmer\n"


@pytest.fixture
def drawn(page, month):
    return lambda: page("policies", month.url)


def changed(desk) -> list[dict]:
    return [given for path, given in desk.asked if path.endswith("apply")]


def test_an_admin_is_asked_before_and_told_after(drawn, desk_of) -> None:
    desk = desk_of("ada@example.com")
    test = drawn().text_area(key="policies-text").set_value(NEW).run()
    test.button(key="policies-apply").click().run()
    assert "Every gateway of this ledger follows" in test.warning[0].value
    assert changed(desk) == [], "the control: nobody has said yes"
    test.text_input(key="policies-note").set_value("calmer nights")
    test.button(key="policies-yes").click().run()
    assert changed(desk) == [{"policies": NEW, "note": "calmer nights", "follows": 0}]
    assert test.success[0].value == "Set 1 is in force, by ada@example.com."
    assert "policies-yes" not in [button.key for button in test.button]


def test_who_leaves_it_has_changed_nothing(drawn, desk_of) -> None:
    desk = desk_of("ada@example.com")
    test = drawn().text_area(key="policies-text").set_value(NEW).run()
    test.button(key="policies-apply").click().run()
    test.button(key="policies-no").click().run()
    assert changed(desk) == []
    assert "policies-yes" not in [button.key for button in test.button]


def test_an_earlier_set_is_shown_before_it_comes_back(drawn, desk_of) -> None:
    desk = desk_of("ada@example.com")
    desk.post("/policies/apply", policies=NEW)
    desk.asked.clear()
    test = drawn()
    assert test.selectbox(key="policies-earlier").options == ["those of the configuration file"]
    test.button(key="policies-back").click().run()
    test.button(key="policies-yes").click().run()
    asked = [given for path, given in desk.asked if path == "/policies/rollback"]
    assert asked[0] == {"look": True, "to_file": True}
    assert asked[-1] == {"to_file": True, "note": None, "follows": 1}
    assert test.success[0].value == "Set 2 is in force, by ada@example.com."


def test_another_set_that_came_first_is_told(drawn, desk_of) -> None:
    desk = desk_of("ada@example.com")
    desk.refuses["/policies/apply"] = AdminRefused(
        "policy set 1 is in force, but this change was made from set 0.", 409, "policies_moved"
    )
    test = drawn().text_area(key="policies-text").set_value(NEW).run()
    test.button(key="policies-apply").click().run()
    test.button(key="policies-yes").click().run()
    assert (
        test.error[0].value
        == "Nothing was changed: policy set 1 is in force, but this change was made from set 0."
    )


@pytest.mark.parametrize(
    ("name", "role", "words"),
    [
        ("joe@example.com", DashboardRole.VIEWER, "As viewer you can play sets"),
        ("fay@example.com", DashboardRole.FINANCE, "As finance you can play sets"),
        (None, DashboardRole.ADMIN, "Nobody has signed in here"),
    ],
)
def test_others_are_told_who_may(drawn, desk_of, text_of, name, role, words) -> None:
    desk_of(name, role)
    test = drawn()
    assert words in text_of(test)
    keys = [button.key for button in test.button]
    assert "policies-play" in keys
    assert not {"policies-apply", "policies-back"} & set(keys)
