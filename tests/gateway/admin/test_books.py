"""Budgets of one's own team or of all, contracts, and the log of changes, which hides secrets."""

import pytest

from gateway.roles import ROLES, Role

FOR = "/v1/organization"


@pytest.fixture(scope="module")
def tokens(stack):
    return {
        role: stack.key(f"books {role}", team="search", scopes=tuple(sorted(ROLES[role]))).token
        for role in (Role.ADMIN, Role.FINANCE, Role.TEAM_ADMIN)
    }


def test_a_team_admin_sees_the_budgets_of_the_own_team_alone(stack, tokens, patiently) -> None:
    assert stack.chat("api", max_tokens=2).status_code == 200

    def mine() -> list:
        return stack.get(FOR + "/budgets", tokens[Role.TEAM_ADMIN]).json()["data"]

    (one,) = mine()
    assert (one["scope"], one["limit_usd"], one["hard"]) == (
        "team:search", "50.000000000000", True,
    )  # fmt: skip
    assert one["since"].endswith("-01T00:00:00+00:00")
    patiently(lambda: float(mine()[0]["spent_usd"]) > 0)
    every = stack.get(FOR + "/budgets", tokens[Role.FINANCE]).json()["data"]
    assert [one["scope"] for one in every] == ["team:ads", "team:search"]


def test_contracts_are_the_newest_of_each_pool(stack, tokens) -> None:
    found = stack.get(FOR + "/contracts", tokens[Role.FINANCE]).json()["data"]
    assert [(one["pool"], one["usd_per_hour"]) for one in found] == [
        ("embed", "3.500000000000"), ("main", "3.500000000000"),
    ]  # fmt: skip


def test_the_log_says_who_made_a_key_and_holds_no_secret(stack, tokens, patiently) -> None:
    made = stack.post(FOR + "/keys", {"name": "app"}, tokens[Role.ADMIN]).json()

    def entered() -> list:
        found = stack.get(FOR + "/changes?limit=50", tokens[Role.FINANCE]).json()["data"]
        return [
            one for one in found
            if one["register"] == "key_changes" and made["key_id"] in str(one["fields"])
        ]  # fmt: skip

    (one,) = patiently(entered)
    assert one["actor"].startswith("key:")
    everything = stack.get(FOR + "/changes?limit=1000", tokens[Role.FINANCE]).text
    assert made["token"].rpartition("_")[2] not in everything
    assert "secret_hash" not in everything
