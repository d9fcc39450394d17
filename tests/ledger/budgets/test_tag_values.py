"""New values of tags: within their team's share, and for no hold that is refused."""

import pytest
from sqlalchemy import insert

from ledger.budgets import tag_values
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.tag_values import ValueNeed, is_value, owner_of, refused_values
from ledger.declared import declare
from ledger.orm import tables as orm


@pytest.fixture
def books(engine, monkeypatch):
    """A share of two; team `a` has one value, and one value has a budget of its own."""
    monkeypatch.setattr(tag_values, "VALUES_MOST", 2)
    each = BudgetSpec("tag:run=*", "day", 100, hard=True, timezone="UTC")
    own = BudgetSpec("tag:run=own", "day", 100, hard=True, timezone="UTC")
    declare(engine, contracts=(), budgets=(each, own), config=("c", "c"), at_us=10**15)
    with engine.begin() as connection:
        row = {"budget_id": "tag:run=0@day", "window": 7, "spent_pusd": 0, "granted_pusd": 0,
               "claimed_pusd": 0, "team_id": "a"}  # fmt: skip
        connection.execute(insert(orm.BudgetWindowRow), [row])
    return engine


def need(value: str, team: str = "a", pusd: int = 1) -> ValueNeed:
    return ValueNeed(f"tag:run={value}@day", 7, team, pusd)


def test_only_values_that_a_default_binds_are_values() -> None:
    names = ("tag:run=1@day", "tag:run=*@day", "tag:run@day", "user:ann@day", "tag:run=a@b@month")
    assert [is_value(name) for name in names] == [True, False, False, False, True]


def test_a_team_has_its_share_and_a_hold_its_limit(books) -> None:
    needs = [need("0"), need("1"), need("2"), need("own"), need("3", "b"), need("4", "b", 101)]
    with books.connect() as connection:
        told = refused_values(connection, needs)
        assert told == {need("2").key: 0, need("4").key: 100}
        owners = [owner_of(connection, name, "a") for name in
                  ("tag:run=1@day", "tag:run=own@day", "user:ann@day")]  # fmt: skip
        assert owners == ["a", None, None]


def test_a_value_is_made_for_a_hold_of_which_none_is_refused(books) -> None:
    needs = [need("1", "b"), need("2", "b", 101), need("3", "b")]
    one, dear, three = (each.key for each in needs)
    with books.connect() as connection:
        assert refused_values(connection, needs, [[one, dear], [three]]) == {dear: 100, one: None}
        both = refused_values(connection, needs, [[one, dear], [one], [three]])
        assert both == {dear: 100}
