"""One table of scopes: what an attempt falls under, in which order hosts lock, who may set one."""

from types import SimpleNamespace

import pytest

from ledger.budgets.scopes import (
    BY_PREFIX,
    SCOPE_KINDS,
    TEAM,
    AttemptRows,
    BudgetReader,
    NameRule,
    prefixes,
    request_scopes,
    target_scopes,
)
from ledger.orm.books import AttemptRow

WIDEST_FIRST = (
    "global", "external", "org", "team", "user", "key", "provider", "model", "tag",
)  # fmt: skip


def payer(**changes):
    fields = {"key_id": "k", "user_id": None, "team_id": "search", "org_id": "acme", "tags": ()}
    return SimpleNamespace(**fields | {"counts_on": ()} | changes)


def target(**changes):
    return SimpleNamespace(**{"name": "t", "provider": None, "simulated": False} | changes)


def test_the_order_of_locking_is_the_one_of_all_hosts() -> None:
    """Hosts of two versions that lock in two orders wait for each other."""
    assert prefixes() == WIDEST_FIRST
    assert [kind.width for kind in BY_PREFIX.values()] == list(range(len(SCOPE_KINDS)))


def test_a_request_is_counted_on_each_of_its_scopes() -> None:
    asked = payer(user_id="ann", tags=(("app", "web"),))
    assert request_scopes(asked, "chat") == (
        "global", "org:acme", "team:search", "key:k", "model:chat", "user:ann", "tag:app",
        "tag:app=web",
    )  # fmt: skip
    assert request_scopes(payer(), "chat") == (
        "global", "org:acme", "team:search", "key:k", "model:chat",
    )  # fmt: skip
    assert request_scopes(payer(counts_on=("maker", "first")), "chat") == (
        "global", "org:acme", "team:search", "key:k", "key:maker", "key:first", "model:chat",
    )  # fmt: skip


def test_a_target_adds_its_provider_and_what_is_really_paid() -> None:
    assert target_scopes(target()) == ()
    assert target_scopes(target(provider="openai")) == ("provider:openai", "external")
    assert target_scopes(target(provider="openai", simulated=True)) == ("provider:openai",)


def test_who_may_set_what() -> None:
    assert prefixes(lambda kind: kind.for_each) == ("team", "user", "key")
    assert prefixes(lambda kind: kind.name_rule is NameRule.NONE) == ("global", "external")
    assert prefixes(lambda kind: kind.limits_rates) == (
        "global", "org", "team", "user", "key", "model", "tag",
    )  # fmt: skip


@pytest.mark.parametrize("kind", SCOPE_KINDS, ids=lambda kind: kind.prefix)
def test_an_entry_is_whole(kind) -> None:
    assert (kind.of_request is None) != (kind.of_target is None)
    assert (kind.rows is AttemptRows.COLUMN) == (kind.column is not None)
    assert kind.column is None or kind.column in AttemptRow.__table__.columns
    assert kind.words
    assert not kind.for_each or kind.column


def test_who_is_told_what() -> None:
    told = {kind.prefix: kind.told_to for kind in SCOPE_KINDS}
    assert {name for name, reader in told.items() if reader is BudgetReader.OWNER} == {
        "key",
        "user",
    }
    assert {name for name, reader in told.items() if reader is BudgetReader.SHARER} == {
        "team", "tag",
    }  # fmt: skip
    assert prefixes(lambda kind: kind.is_of_keys) == ("org", "team", "user", "key", "tag")
    assert prefixes(lambda kind: kind.is_one_name) == ("org", "team", "user", "key", "model")


@pytest.mark.parametrize("kind", SCOPE_KINDS, ids=lambda kind: kind.prefix)
def test_only_a_scope_with_owners_has_own_names(kind) -> None:
    assert (kind.own_name is not None) == (kind.told_to is BudgetReader.OWNER)
    if kind.own_name is not None:
        asked = payer(user_id="ann", counts_on=("maker",))
        assert kind.own_name(asked) in kind.of_request(asked, "chat")


def test_a_scope_has_the_name_that_it_is_given() -> None:
    assert TEAM.scope("search") == "team:search"
    assert TEAM.scope("") == "team:"
    assert BY_PREFIX["global"].scope("") == "global"
