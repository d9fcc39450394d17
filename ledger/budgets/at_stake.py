"""The most that missing rows of a journal can have cost: what its worker was lent. Pure.

A worker holds what an attempt may cost on every hard budget of its scopes before it is dispatched.
A budget on the scope `global` therefore bounds all that a worker can have spent. Other budgets
bound the attempts of their scope alone, and a worker may have served others.
"""

from collections import Counter
from collections.abc import Mapping

from ledger.budgets.grants import BudgetAccount
from ledger.journals.findings import LackingBound

GLOBAL = "global@"  # how the ids of the house's own budgets begin


def lacking_bound(at_stake: Mapping[BudgetAccount, int]) -> LackingBound:
    """Return the bound for a worker that was lent so much, by account, beyond what is booked."""
    lent: Counter[str] = Counter()
    for account, pusd in at_stake.items():
        lent[account.budget_id] += max(0, pusd)
    of_all = [pusd for budget_id, pusd in lent.items() if budget_id.startswith(GLOBAL)]
    at_most = min(of_all, default=None)
    return LackingBound(at_most, lent.total() if at_most is None else at_most)
