"""A set under edit: faults name the field, what was typed stays, and a what-if is waited for."""

import pytest

from dashboard.admin_client import AdminRefused

NEW = "policies:\n- name: calmer\n"
RUNNING = {"state": "running", "progress": {"doing": "plays this set", "done": 5, "of": 10}}
FAILED = {
    "state": "failed",
    "fault": "--ledger last-24-hours: the ledger has no answered conversation",
}


@pytest.fixture
def drawn(page, month):
    return lambda: page("policies", month.url)


def typed(test, text: str):
    return test.text_area(key="policies-text").set_value(text).run()


def test_it_begins_with_what_is_in_force(drawn, desk_of, text_of) -> None:
    desk = desk_of("ada")
    test = drawn()
    assert test.text_area(key="policies-text").value == desk.text
    assert "This is the set in force" in text_of(test)
    assert test.button(key="policies-play").disabled is False


def test_a_fault_names_its_line_and_field_and_is_not_played(drawn, desk_of) -> None:
    desk = desk_of("ada")
    test = typed(drawn(), "wrong")
    assert test.error[0].value == "Line 3, `policies[0].slo.ttft`: no such member"
    assert test.button(key="policies-play").disabled
    assert test.button(key="policies-apply").disabled
    assert ("/policies/diff", {"policies": "wrong"}) not in desk.asked


def test_each_text_is_judged_once(drawn, desk_of) -> None:
    desk = desk_of("ada")
    test = typed(drawn(), NEW)
    test.run()
    test.run()
    checks = [given for path, given in desk.asked if path == "/policies/check"]
    assert checks.count({"policies": NEW}) == 1
    assert "+- name: calmer" in test.code[0].value
    test.button(key="policies-reset").click().run()
    assert test.text_area(key="policies-text").value == desk.text


def test_who_changed_nothing_follows_and_who_did_keeps_it(drawn, desk_of) -> None:
    desk = desk_of("ada")
    test = drawn()
    desk.text = "policies:\n- name: other\n"
    assert test.run().text_area(key="policies-text").value == desk.text
    typed(test, NEW)
    desk.text = "policies:\n- name: third\n"
    assert test.run().text_area(key="policies-text").value == NEW


def test_what_is_asked_for_is_what_was_chosen(drawn, desk_of) -> None:
    desk = desk_of("ada")
    desk.looks = [RUNNING, RUNNING, FAILED]
    test = typed(drawn(), NEW)
    test.segmented_control(key="policies-span").set_value("7 d")
    test.selectbox(key="policies-most").set_value(2_000)
    test.text_input(key="policies-model").set_value("old=chat, x=y")
    test.button(key="policies-play").click().run()
    (asked,) = [
        given
        for path, given in desk.asked
        if path == "/policies/simulate" and given.get("policies")
    ]
    assert asked == {
        "policies": NEW, "name": "this set", "against": "in-force", "against_name": "in force",
        "ledger": "last-7-days", "most": 2_000, "times": 1.0, "model": ["old=chat", "x=y"],
        "engine": [],
    }  # fmt: skip
    assert "j" * 32 in test.query_params["whatif"]
    assert test.button(key="policies-cancel").label == "Cancel it"
    test.run()
    assert "the ledger has no answered conversation" in test.error[0].value
    assert "--ledger" not in test.error[0].value
    assert desk.looks == [FAILED], "it was looked at until it had ended"


def test_one_that_runs_can_be_cancelled(drawn, desk_of) -> None:
    desk = desk_of("ada")
    desk.looks = [RUNNING] * 4 + [{"state": "cancelled", "fault": "ada cancelled it"}]
    test = drawn().button(key="policies-play").click().run()
    test.button(key="policies-cancel").click().run()
    assert ("DELETE /policies/simulate", {"job": "j" * 32}) in desk.asked
    desk.looks = desk.looks[-1:]
    assert "No figures: ada cancelled it." in [note.value for note in test.run().info]


def test_what_is_in_force_is_played_alone(drawn, desk_of) -> None:
    desk = desk_of("ada")
    desk.looks = [FAILED]
    drawn().button(key="policies-play").click().run()
    asked = next(given for path, given in desk.asked if given.get("name"))
    assert asked["name"] == "in force"
    assert "against" not in asked


def test_another_one_under_way_is_told(drawn, desk_of) -> None:
    desk = desk_of("ada")
    desk.refuses["/policies/simulate"] = AdminRefused(
        "another what-if, by eve.", 409, "what_if_busy"
    )
    test = drawn().button(key="policies-play").click().run()
    for _ in range(2):  # a refresh leaves it there
        assert "another what-if, by eve." in [note.value for note in test.info]
        test.run()
    del desk.refuses["/policies/simulate"]
    desk.looks = [FAILED]
    test.button(key="policies-play").click().run()
    assert "another what-if, by eve." not in [note.value for note in test.info]


def test_one_that_is_forgotten_is_said_so(drawn, desk_of) -> None:
    desk = desk_of("ada")
    desk.looks = [FAILED]
    test = drawn().button(key="policies-play").click().run()
    desk.refuses["/policies/simulate"] = AdminRefused("There is no such what-if.", 404, "x")
    assert "There is no such what-if. Play it once more." in [
        note.value for note in test.run().info
    ]
