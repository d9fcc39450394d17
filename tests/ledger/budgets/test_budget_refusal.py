"""Which refusals another try may get past."""

import pytest

from ledger.budgets.budget_refusal import BudgetRefusal


@pytest.mark.parametrize(
    ("unspent", "bound", "held"), [(5, 5, True), (5, 6, False), (-3, 0, False), (0, 0, True)]
)
def test_only_holds_are_in_the_way_of_what_fits_beside_spending(unspent, bound, held) -> None:
    refusal = BudgetRefusal("team:a@day", 10, 0, 0, 1, unspent_pusd=unspent)
    assert refusal.is_for_holds(bound) is held
