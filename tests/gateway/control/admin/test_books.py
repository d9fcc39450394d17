"""Budgets of one's own team or of all, contracts, and the log of changes, which hides secrets."""

from types import SimpleNamespace

import pytest
from sqlalchemy import delete, insert

from gateway.control.admin.books import budgets_list
from gateway.control.admin.verb import NoInput
from gateway.control.roles import ROLES, KeyRole
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.windows import window_at
from ledger.database import make_engine, migrate, sqlite_url
from ledger.declared import declare
from ledger.orm.tables import BudgetWindowRow

FOR = "/v1/organization"


@pytest.fixture(scope="module")
def tokens(stack):
    return {
        role: stack.key(f"books {role}", team="search", scopes=tuple(sorted(ROLES[role]))).token
        for role in (KeyRole.ADMIN, KeyRole.FINANCE, KeyRole.TEAM_ADMIN)
    }


def test_a_team_admin_sees_the_budgets_of_the_own_team_alone(stack, tokens, patiently) -> None:
    assert stack.chat("api", max_tokens=2).status_code == 200

    def mine() -> list:
        return stack.get(FOR + "/budgets", tokens[KeyRole.TEAM_ADMIN]).json()["data"]

    (item,) = mine()
    assert (item["scope"], item["limit_usd"], item["hard"]) == (
        "team:search", "50.000000000000", True,
    )  # fmt: skip
    assert item["since"].endswith("-01T00:00:00+00:00")
    patiently(lambda: float(mine()[0]["spent_usd"]) > 0)
    every = stack.get(FOR + "/budgets", tokens[KeyRole.FINANCE]).json()["data"]
    assert [item["scope"] for item in every] == ["team:ads", "team:search"]


def test_contracts_are_the_newest_of_each_pool(stack, tokens) -> None:
    found = stack.get(FOR + "/contracts", tokens[KeyRole.FINANCE]).json()["data"]
    assert [(finding["pool"], finding["usd_per_hour"]) for finding in found] == [
        ("embed", "3.500000000000"), ("main", "3.500000000000"),
    ]  # fmt: skip


def test_the_log_says_who_made_a_key_and_holds_no_secret(stack, tokens, patiently) -> None:
    made = stack.post(FOR + "/keys", {"name": "app"}, tokens[KeyRole.ADMIN]).json()

    def entered() -> list:
        found = stack.get(FOR + "/changes?limit=50", tokens[KeyRole.FINANCE]).json()["data"]
        return [
            finding for finding in found
            if finding["register"] == "key_changes" and made["key_id"] in str(finding["fields"])
        ]  # fmt: skip

    (item,) = patiently(entered)
    assert item["actor"].startswith("key:")
    everything = stack.get(FOR + "/changes?limit=1000", tokens[KeyRole.FINANCE]).text
    assert made["token"].rpartition("_")[2] not in everything
    assert "secret_hash" not in everything


def test_a_default_is_followed_by_everybody_whom_it_binds(tmp_path) -> None:
    at_us = 1_795_435_200_000_000
    migrate(url := sqlite_url(tmp_path / "ledger.db"))
    ledger = make_engine(url)
    each = [BudgetSpec(f"{kind}:*", "month", 10**12, hard=True, timezone="UTC")
            for kind in ("user", "team")]  # fmt: skip
    own = BudgetSpec("user:cat", "month", 5 * 10**12, hard=False, timezone="UTC")
    declare(ledger, contracts=(), budgets=(*each, own), config=("c", "c"), at_us=at_us)
    month = window_at("month", "UTC", at_us // 10**6).start_s
    with ledger.begin() as connection:
        connection.execute(delete(BudgetWindowRow))
        for name, pusd in (("user:ann", 7), ("user:cat", 9), ("team:ads", 3)):
            row = {"budget_id": f"{name}@month", "window": month, "spent_pusd": pusd}
            connection.execute(insert(BudgetWindowRow), [row | {"granted_pusd": 0}])

    def told(whose) -> list[tuple]:
        place = SimpleNamespace(ledger=ledger, identity=whose, now_us=at_us)
        found = budgets_list.work(place, NoInput())["data"]
        return [
            (
                finding["scope"],
                finding["limit_usd"][:4],
                float(finding["spent_usd"]) * 1e12,
                finding["default"],
            )
            for finding in found
        ]

    teams, users = "team:*@month", "user:*@month"
    assert told(None) == [
        ("team:*", "1.00", 0, None), ("team:ads", "1.00", 3, teams),
        ("user:*", "1.00", 0, None), ("user:ann", "1.00", 7, users),
        ("user:cat", "5.00", 9, None),
    ]  # fmt: skip
    for team, spent in (("ads", 3), ("new", 0)):
        mine = SimpleNamespace(scopes=frozenset({"budgets"}), team_id=team)
        assert told(mine) == [(f"team:{team}", "1.00", spent, teams)]
    ledger.dispose()
