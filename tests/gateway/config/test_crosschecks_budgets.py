"""Budget scopes that nothing can fall under, windows that do not exist or are stated twice."""

import pytest

from gateway.config.crosschecks_budgets import BUDGET_CHECKS, check_windows
from gateway.config.schema import Settings
from ledger.budgets.scopes import prefixes

KEY = "0123456789abcdef"


def found(budgets=(), teams=()) -> list[str]:
    settings = Settings.model_validate(
        {
            "models": {
                "chat": {"targets": ["openai/a"]},
                "gpt": {"same_as": "chat"},
                "lost": {"same_as": "nothing"},
                "openai/*": "passthrough",
            },
            "providers": {"openai": {}, "flex": {"billed_with": "openai"}},
            "policies": [{"name": "x", "match": {"teams": list(teams)}}],
            "budgets": [{"usd": 1, **budget} for budget in budgets],
        }
    )
    return [fault.text("f") for check in BUDGET_CHECKS for fault in check(settings)]


GOOD = ("global", "external", "org:acme", "team:search", "user:ann", f"key:{KEY}",
        "provider:openai", "model:chat", "model:openai/gpt-5", "tag:app", "tag:app=web",
        "tag:cost centre=a=b", "tag:run=*", "user:*", "team:*", "key:*")  # fmt: skip


def test_a_budget_for_each_value_is_hard():
    (fault,) = found([{"scope": "tag:run=*", "hard": False}])
    assert "`tag:run=*` is one budget for each value, and clients name these" in fault
    assert "budgets[0].hard" in fault


def test_every_kind_of_scope_is_possible():
    assert {scope.partition(":")[0] for scope in GOOD} == set(prefixes())
    assert found([{"scope": scope} for scope in GOOD], teams=["search"]) == []


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("galaxy:x", "`galaxy` is not a kind of scope; there are `external`, `global`"),
        ("teem:search", "`teem` is not a kind of scope; did you mean `team`?"),
        ("", "`` is not a kind of scope"),
        ("global:x", "`global` takes no name"),
        ("external:", "`external` takes no name"),
        ("team", "`team` needs a name: `team:NAME`"),
        ("team: ", "`team` needs a name"),
        ("team: search", "no team is called ` search`: remove the blank at its start or end"),
        ("org:a\x07b", "no organisation id is longer than 128 printable characters"),
        ("user:" + "x" * 129, "no user id is longer than 128"),
        ("provider:opnai", "no provider named `opnai`; did you mean `openai`?"),
        ("provider:flex", "`flex` is billed with `openai`: `provider:openai` counts both"),
        ("model:chatt", "no model named `chatt`; did you mean `chat`?"),
        ("model:openai/*", "no model named `openai/*`"),
        ("model:gpt", "`gpt` is an alias: name `chat`"),
        ("tag", "`tag` needs a name: `tag:NAME`"),
        ("tag:=web", "`tag` needs a name: `tag:NAME` or `tag:NAME=VALUE`, not `tag:=web`"),
        ("tag: app", "`tag` needs a name"),
        ("tag:app=" + "x" * 257, "no tag has a name or value longer than 256"),
        ("model:*", "`model:*` would limit no key: budgets for each exist for `team:*`"),
        ("tag:*", "`tag:*` would limit no key"),
        ("tag:*=x", "`tag:*=x` would limit no key: write `tag:NAME`"),
        ("tag:*=*", "`tag:*=*` would limit no key"),
        ("tag:run=", "`tag:run=` would limit no key"),
        ("key:first", "a key's scope is its id of 16 digits"),
    ],
)
def test_an_impossible_scope_is_said(scope, said):
    faults = [fault for fault in found([{"scope": scope}]) if "budgets[0].scope: " in fault]
    assert len(faults) == 1
    assert said in faults[0]


def test_an_alias_that_leads_nowhere_has_its_own_fault():
    assert found([{"scope": "model:lost"}]) == []


def test_an_unknown_time_zone_is_said():
    (fault,) = found([{"scope": "global", "timezone": "Mars/Olympus"}])
    assert fault.startswith("f: budgets[0].timezone: `Mars/Olympus` is not an IANA time zone")


@pytest.mark.parametrize("zone", ["localtime", "Factory", "posixrules", "right/Europe/Berlin"])
def test_a_zone_of_no_place_is_said(zone):
    """Each machine has another `localtime`: two hosts would count in different windows."""
    (fault,) = found([{"scope": "global", "timezone": zone}])
    assert fault == (
        f"f: budgets[0].timezone: `{zone}` is no zone of a place: write an IANA zone such as "
        "Europe/Berlin, or UTC"
    )
    (of_all,) = check_windows(Settings.model_validate({"timezone": zone}))
    assert of_all.place == ("timezone",)


def test_an_unknown_zone_of_the_organisation_is_said_once():
    document = {"timezone": "Mars/Olympus", "budgets": [{"scope": "global", "usd": 1}]}
    settings = Settings.model_validate(document)
    (fault,) = check_windows(settings)
    assert fault.place == ("timezone",)


def test_two_budgets_of_one_scope_and_period_are_one_too_many():
    day, month = {"scope": "global", "period": "day"}, {"scope": "global", "period": "month"}
    assert found([day, month]) == []
    (fault,) = found([day, month, day])
    assert "budgets[2]: `global` has a budget per day already" in fault


def test_a_team_of_a_policy_must_be_possible():
    (fault,) = found(teams=["search", "ads "[:3] + "\x00"])
    assert "policies[0].match.teams[1]: no team id is longer than" in fault
