"""What rows that lack can have cost: bounded by the house's own budget, else unknown."""

import pytest

from ledger.budgets.at_stake import lacking_bound
from ledger.budgets.grants import BudgetAccount
from ledger.journals.findings import LackingBound

DAY, MONTH = BudgetAccount("global@day", 1), BudgetAccount("global@month", 1)
NEXT, TEAM = BudgetAccount("global@day", 2), BudgetAccount("team:a@day", 1)


@pytest.mark.parametrize(
    ("at_stake", "bound"),
    [
        ({}, LackingBound(None, 0)),
        ({TEAM: 70}, LackingBound(None, 70)),
        ({TEAM: 70, DAY: 90}, LackingBound(90, 90)),
        ({DAY: 90, NEXT: 20, MONTH: 100}, LackingBound(100, 100)),
        ({DAY: -5}, LackingBound(0, 0)),
    ],
)
def test_the_bound_by_what_was_lent(at_stake, bound) -> None:
    assert lacking_bound(at_stake) == bound
