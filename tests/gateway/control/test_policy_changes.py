"""Sets of policies are put in force one after the other, and taken back as new entries."""

import pytest

from gateway.config.settings import parse
from gateway.control import policy_changes
from gateway.control.override_changes import OverrideAuthor
from gateway.policies.sets import examine_set
from ledger.database import make_engine, migrate, sqlite_url

SETTINGS = parse("policies: [{name: filed}]", name="x")
CALM, KEEN = "policies: [{name: calm}]", "policies: [{name: keen}]"
ANN = OverrideAuthor("ann", "why", 1)


@pytest.fixture
def engine(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    made = make_engine(url, keep_open=True)
    yield made
    made.dispose()


def test_there_and_back_again(engine):
    assert policy_changes.policies_document(engine, SETTINGS)[0]["set"] == 0
    with pytest.raises(policy_changes.PolicyChangeError, match="there is no earlier policy set"):
        policy_changes.previous_policies(engine, SETTINGS, None, to_file=False)
    calm = policy_changes.parse_change(CALM, SETTINGS, "x")
    assert policy_changes.diff_lines(engine, SETTINGS, calm.new)[-2:] == [
        "-- name: filed",
        "+- name: calm",
    ]
    assert policy_changes.activate_policies(engine, calm, ANN, follows=0) == 1
    assert (
        policy_changes.activate_policies(
            engine, policy_changes.parse_change(KEEN, SETTINGS, "x"), ANN
        )
        == 2
    )
    back = policy_changes.previous_policies(engine, SETTINGS, None, to_file=False)
    assert [rule.name for rule in back.new.policies] == ["calm"]
    assert (
        policy_changes.previous_policies(engine, SETTINGS, 2, to_file=False).document
        == "policies:\n- name: keen\n"
    )
    assert policy_changes.previous_policies(
        engine, SETTINGS, None, to_file=True
    ) == policy_changes.PolicySetChange(SETTINGS, None)
    assert (
        policy_changes.activate_policies(engine, back, ANN)
        == policy_changes.newest_number(engine)
        == 3
    )
    assert [item["set"] for item in policy_changes.policy_history(engine, SETTINGS, 2)] == [3, 2]
    assert (
        policy_changes.policies_document(engine, SETTINGS)[0]["policies"]
        == "policies:\n- name: calm\n"
    )


def test_who_has_not_seen_the_newest_is_told(engine):
    calm = policy_changes.parse_change(CALM, SETTINGS, "x")
    policy_changes.activate_policies(engine, calm, ANN)
    with pytest.raises(
        policy_changes.PolicyConflict,
        match="policy set 1 is in force, but this change was made from set 0",
    ):
        policy_changes.activate_policies(engine, calm, ANN, follows=0)
    with pytest.raises(policy_changes.PolicyChangeError, match="no policy set 9"):
        policy_changes.previous_policies(engine, SETTINGS, 9, to_file=False)


def test_back_to_the_file_by_its_number_and_never_to_two_at_once(engine):
    """`show` says set 0 of what the file says."""
    policy_changes.activate_policies(engine, policy_changes.parse_change(CALM, SETTINGS, "x"), ANN)
    assert policy_changes.previous_policies(
        engine, SETTINGS, 0, to_file=False
    ) == policy_changes.PolicySetChange(SETTINGS, None)
    assert policy_changes.previous_policies(
        engine, SETTINGS, 0, to_file=True
    ) == policy_changes.PolicySetChange(SETTINGS, None)
    with pytest.raises(
        policy_changes.PolicyChangeError,
        match="name either policy set 1 or `--to-file` ",
    ):
        policy_changes.previous_policies(engine, SETTINGS, 1, to_file=True)


def test_a_set_that_does_not_fit_can_be_taken_out_of_the_way(engine):
    """The file's policies hold meanwhile; with its model it would be in force again by itself."""
    models = "models: {chat: {targets: [x/m]}}\nproviders: {x: {base_url: 'https://x.test/v1'}}\n"
    whole = parse(models + "policies: [{name: filed}]", name="x")
    given = policy_changes.parse_change(
        "policies: [{name: of, match: {models: [chat]}}]", whole, "x"
    )
    policy_changes.activate_policies(engine, given, ANN)
    assert policy_changes.diff_lines(engine, whole, given.new) == []
    assert policy_changes.diff_lines(engine, SETTINGS, SETTINGS) == [
        "-set 1, which does not fit and is not used"
    ]
    back = policy_changes.previous_policies(engine, SETTINGS, None, to_file=True)
    assert policy_changes.activate_policies(engine, back, ANN) == 2
    assert policy_changes.diff_lines(engine, SETTINGS, SETTINGS) == []
    assert [
        policy.name
        for policy in policy_changes.policies_document(engine, whole)[2].settings.policies
    ] == ["filed"]


def test_a_faulty_set_is_told_whole():
    with pytest.raises(
        policy_changes.PolicyChangeError, match="the policy set is invalid: 1 error"
    ):
        policy_changes.parse_change("policies: [{name: x, slo: {ttft: 3}}]", SETTINGS, "x")
    told = policy_changes.check_document(
        examine_set("policies: [{name: x, match: {when: '('}}]", SETTINGS, "x")
    )
    assert (told["valid"], told["policies"], len(told["faults"])) == (False, [], 1)
