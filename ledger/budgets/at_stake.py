"""Upper bound on the cost of missing journal rows: the money lent to the worker.

A worker holds an attempt's maximum cost on every hard budget of its scopes before dispatch. A
budget on the scope `global` therefore limits everything that a worker can have spent. Other budgets
limit only the attempts of their scope. This module does no I/O.
"""

from collections import Counter
from collections.abc import Mapping

from ledger.budgets.grants import BudgetAccount
from ledger.journals.findings import LackingBound

GLOBAL = "global@"  # prefix of the ids of budgets on everything


def lacking_bound(at_stake: Mapping[BudgetAccount, int]) -> LackingBound:
    """Return the bound for a worker, from the money lent beyond booked spending, by account."""
    lent: Counter[str] = Counter()
    for account, pusd in at_stake.items():
        lent[account.budget_id] += max(0, pusd)
    of_all = [pusd for budget_id, pusd in lent.items() if budget_id.startswith(GLOBAL)]
    at_most = min(of_all, default=None)
    return LackingBound(at_most, lent.total() if at_most is None else at_most)
