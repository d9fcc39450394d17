"""Keys, teams and budgets keep their meaning, or the difference has a name."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from gateway.config.litellm_notes import ImportLoss
from gateway.control.litellm.identities import IdentityPlan, SourceRows, plan_identities
from gateway.control.litellm.source_database import COLUMNS

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DIGEST = sha256(b"sk-a").hexdigest()


def row(table: str, **given: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS[f"LiteLLM_{table}"]) | given


def key(**given: Any) -> dict[str, Any]:
    return row("VerificationToken", **{"token": DIGEST, "key_alias": "web", **given})


def plan_of(
    *keys: Mapping[str, Any],
    teams: tuple[dict[str, Any], ...] = (),
    budgets: tuple[dict[str, Any], ...] = (),
    users: tuple[dict[str, Any], ...] = (),
    organisations: tuple[dict[str, Any], ...] = (),
) -> IdentityPlan:
    rows = SourceRows(
        {each["budget_id"]: each for each in budgets},
        {each["organization_id"]: each for each in organisations},
        {each["team_id"]: each for each in teams},
        {each["user_id"]: each for each in users},
        keys,
    )
    return plan_identities(rows, lambda digest: f"id-{digest[:4]}", NOW)


def test_a_team_is_called_by_its_alias_where_that_is_its_own() -> None:
    teams = tuple(
        row("TeamTable", team_id=name, team_alias=alias)
        for name, alias in (
            ("t1", "search"), ("t2", "twice"), ("t3", "twice"), ("t4", " "), ("t5", "default"),
            ("t6", "t1"), ("t7", None),
        )
    )  # fmt: skip
    assert plan_of(teams=teams).teams == {
        "t1": "search", "t2": "t2", "t3": "t3", "t4": "t4", "t5": "t5", "t6": "t6", "t7": "t7",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["default", "*"])
def test_a_team_or_organisation_whose_id_has_a_meaning_here_gets_another(name) -> None:
    plan = plan_of(
        key(team_id=name),
        teams=(row("TeamTable", team_id=name, team_alias=None),),
        organisations=(row("OrganizationTable", organization_id=name, organization_alias=None),),
    )
    assert plan.teams == plan.organisations == {name: f"litellm {name}"}
    assert [planned.spec.team for planned in plan.keys] == [f"litellm {name}"]


@pytest.mark.parametrize(
    ("own", "teams", "expected"),
    [
        ([], None, None),
        (["all-proxy-models"], [], None),
        (["a", "b"], [], ("a", "b")),
        ([], ["a"], ("a",)),
        (["all-team-models"], ["a"], ("a",)),
        (["a", "b"], ["b", "c"], ("b",)),
    ],
)
def test_a_key_may_use_what_it_could(own, teams, expected) -> None:
    team = row("TeamTable", team_id="t", models=teams)
    (planned,) = plan_of(key(models=own, team_id="t"), teams=(team,)).keys
    assert planned.spec.models == expected


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"blocked": True}, "blocked"),
        ({"expires": datetime(2026, 11, 19)}, "expired"),  # noqa: DTZ001  (as the driver gives it)
        ({"team_id": "gone"}, "its team `gone` is not there"),
        ({"team_id": "off"}, "its team is blocked"),
        ({"models": ["no-default-models"]}, "no model"),
        ({"token": "not a hash"}, "issue a new key"),
    ],
)
def test_what_opens_nothing_is_left_out_with_its_reason(changes, why) -> None:
    team = row("TeamTable", team_id="off", blocked=True)
    plan = plan_of(key(**changes), teams=(team,))
    assert plan.keys == []
    assert why in plan.left_out[0].why
    assert DIGEST not in repr(plan)


def test_a_token_that_was_stored_plainly_is_hashed() -> None:
    (planned,) = plan_of(key(token="sk-a")).keys
    assert planned.digest == DIGEST
    assert "sk-a" not in repr(planned)


@pytest.mark.parametrize(
    ("duration", "period"),
    [("1d", "day"), ("24h", "day"), ("30d", "month"), ("1mo", "month"), ("monthly", "month")],
)
def test_budgets_of_a_day_or_a_month_are_ours(duration, period) -> None:
    plan = plan_of(key(max_budget="12.5", budget_duration=duration))
    assert plan.budgets == [
        {"scope": f"key:id-{DIGEST[:4]}", "usd": "12.5", "period": period, "hard": True}
    ]
    assert plan.notes == []


@pytest.mark.parametrize("duration", [None, "7d", "1h", "2mo", "soon"])
def test_other_budgets_are_a_loss_until_it_is_accepted(duration) -> None:
    plan = plan_of(key(max_budget="5", budget_duration=duration))
    assert plan.budgets == []
    (note,) = plan.notes
    assert (note.loss, note.rank(), note.rank([ImportLoss.BUDGETS])) == (
        ImportLoss.BUDGETS, "error", "warning",
    )  # fmt: skip


def test_shared_budgets_limits_and_owners_come_along() -> None:
    plan = plan_of(
        key(team_id="t", user_id="ann", budget_id="b", rpm_limit=60, tpm_limit=9000),
        teams=(row("TeamTable", team_id="t", team_alias="search", organization_id="o",
                   max_budget="100", budget_duration="30d"),),
        budgets=(row("BudgetTable", budget_id="b", soft_budget="1", budget_duration="1d"),),
        users=(row("UserTable", user_id="ann", max_budget="3", budget_duration="1d"),
               row("UserTable", user_id="nobodys", max_budget="3", budget_duration="1d")),
        organisations=(row("OrganizationTable", organization_id="o", organization_alias="acme"),),
    )  # fmt: skip
    (planned,) = plan.keys
    assert (planned.spec.org, planned.spec.team, planned.spec.user) == ("acme", "search", "ann")
    ours = f"key:id-{DIGEST[:4]}"
    assert [(each["scope"], each["usd"], each["hard"]) for each in plan.budgets] == [
        ("team:search", "100", True), (ours, "1", False), ("user:ann", "3", True),
    ]  # fmt: skip
    assert plan.limits == [{"scope": ours, "requests_per_minute": 60, "tokens_per_minute": 9000}]
    assert plan.notes == []


@pytest.mark.parametrize(
    ("changes", "loss"),
    [
        ({"allowed_routes": ["/chat"]}, ImportLoss.ACCESS),
        ({"permissions": {"x": 1}}, ImportLoss.ACCESS),
        ({"policies": ["p"]}, ImportLoss.CHECKS),
        ({"max_parallel_requests": 3}, ImportLoss.LIMITS),
        ({"model_max_budget": {"m": 1}}, ImportLoss.BUDGETS),
        ({"aliases": {"a": "b"}}, ImportLoss.MODELS),
        ({"rpm_limit": 0}, ImportLoss.ACCESS),
    ],
)
def test_what_has_no_place_here_is_lost_by_name(changes, loss) -> None:
    (note,) = plan_of(key(**changes)).notes
    assert note.loss is loss
