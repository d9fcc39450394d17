"""A broker's loans: the host's grants, split into its workers' slices. No I/O.

Every account is an `escrow.GrantPool` whose holders are journals. A loan counts as gone until the
worker returns it, or until its journal has ended and the database has its spending. After a restart
the holders of earlier grants are unknown. That money becomes free when every worker has declared
its loans or its journal is closed. So crashes in any order cannot lend the same money twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ledger.budgets.escrow import GrantPool, is_sliced, loan_pusd
from ledger.budgets.grants import AccountBalance, BudgetAccount

# Holders other than journals. Names of journals contain neither character.
GONE = ""  # spending of ended workers
UNKNOWN = "?"  # grants from before a restart that no worker has declared


class LoanBook:
    """The loans of one host. `standings` are the account balances last read from the database."""

    def __init__(self) -> None:
        self._pots: dict[BudgetAccount, GrantPool] = {}
        self._spent: dict[tuple[str, BudgetAccount], int] = {}
        self._undeclared: set[str] = set()
        self.standings: dict[BudgetAccount, AccountBalance] = {}

    def restore(
        self,
        journals: Iterable[str],
        standings: Mapping[BudgetAccount, AccountBalance],
        spent: Mapping[tuple[str, BudgetAccount], int],
    ) -> None:
        """Start from the database. Any of `journals` may have loans."""
        self._undeclared = set(journals)
        self._spent = dict(spent)
        self.standings = dict(standings)
        for account, standing in standings.items():
            alive = sum(spent.get((journal, account), 0) for journal in self._undeclared)
            gone = standing.mine_spent_pusd - alive
            granted = {GONE: gone, UNKNOWN: standing.mine_pusd - gone}
            self._pots[account] = GrantPool(standing.mine_pusd, granted)
        self._release_unknown()

    def remaining_pusd(self, account: BudgetAccount) -> int:
        """Return the amount that this host can lend without the database.

        Idle money above a lowered limit is left out, as far as the limit is known.
        """
        room, known = self.idle_pusd(account), self.standings.get(account)
        if known is None or known.remaining_pusd >= 0:
            return room
        return min(room, max(0, room + known.remaining_pusd))

    def idle_pusd(self, account: BudgetAccount) -> int:
        """Return the part of this host's grant that is not lent."""
        return self._pot(account).remaining_pusd

    def lent_pusd(self, account: BudgetAccount) -> int:
        """Return the loans of workers minus booked spending."""
        return sum(
            pusd - self._spent.get((journal, account), 0)
            for journal, pusd in self._pot(account).granted.items()
            if journal not in (GONE, UNKNOWN)
        )

    def at_stake(self, journal: str) -> dict[BudgetAccount, int]:
        """Return the maximum that a journal's worker was lent beyond its booked spending.

        A worker that has declared nothing since a restart may have all unaccounted money. Other
        threads may call this: it reads copies of values that are replaced as a whole.
        """
        pots, spent, silent = dict(self._pots), dict(self._spent), set(self._undeclared)
        found = {}
        for account, pot in pots.items():
            lent = pot.granted.get(journal, 0)
            booked = {journal}
            if journal in silent:
                lent += pot.granted.get(UNKNOWN, 0)
                booked |= silent
            left = lent - sum(spent.get((name, account), 0) for name in booked)
            if left > 0:
                found[account] = left
        return found

    def is_unaccounted(self, account: BudgetAccount) -> bool:
        """Return whether workers may have undeclared money of the account."""
        return self._pot(account).granted.get(UNKNOWN, 0) > 0

    def set_grant(self, account: BudgetAccount, standing: AccountBalance) -> None:
        """Apply this host's grant as the database has it.

        A forgotten account starts with its spending and no other loans.
        """
        pot = self._pots.get(account)
        if pot is None:
            spent = standing.mine_spent_pusd
            pot = GrantPool(0, {GONE: spent} if spent else {})
        self._pots[account] = replace(pot, limit_pusd=standing.mine_pusd)
        self.standings[account] = standing

    def forget_unmade(self, account: BudgetAccount) -> None:
        """Forget an account that the database did not make, because its request is refused."""
        if not self.is_made(account) and account in self.standings:
            del self.standings[account], self._pots[account]

    def forget_ended(self, start_s: int) -> None:
        """Forget windows that began before `start_s` and have no loans.

        If a clock was ahead and a window is needed again, the database knows its spending.
        """
        ended = [
            account
            for account in self._pots
            if account.window < start_s
            and not self.lent_pusd(account)
            and not self.is_unaccounted(account)
        ]
        for account in ended:
            del self._pots[account]
            self.standings.pop(account, None)
        if ended:
            gone = set(ended)
            self._spent = {key: pusd for key, pusd in self._spent.items() if key[1] not in gone}

    def is_made(self, account: BudgetAccount) -> bool:
        """Return whether the database has the account, by its last answer."""
        known = self.standings.get(account)
        return known is not None and known.made

    def lend(
        self,
        journal: str,
        account: BudgetAccount,
        *,
        asked_pusd: int,
        hold_pusd: int,
        holders: int,
        exact: bool = False,
    ) -> tuple[int, bool]:
        """Lend at least `asked_pusd`, which must fit. Return the loan, and if little is left.

        `exact` lends no more than that: others wait for the rest.
        """
        room = self.remaining_pusd(account)
        assert asked_pusd <= room
        known = self.standings.get(account)
        total = room + (max(0, known.remaining_pusd) if known else 0)
        wanted = asked_pusd if exact else loan_pusd(total, asked_pusd, hold_pusd, holders)
        loan = max(asked_pusd, min(wanted, room))
        self._hold(account, journal, self._pot(account).granted.get(journal, 0) + loan)
        return loan, not is_sliced(total - loan, hold_pusd, holders)

    def record_return(self, journal: str, account: BudgetAccount, pusd: int) -> None:
        pot = self._pots.get(account)
        if pot is not None:
            self._hold(account, journal, pot.granted.get(journal, 0) - pusd)

    def declare(self, journal: str, granted: Mapping[BudgetAccount, int]) -> None:
        """Apply a worker's own statement of its loans, including spent money.

        For an account that the worker left out, its booked spending counts as its loan.
        """
        for account in {*self._pots, *granted}:
            known = self._spent.get((journal, account), 0)
            pot, lent = self._pot(account), granted.get(account, known)
            if not lent and journal not in pot.granted:
                continue
            if UNKNOWN in pot.granted and journal in self._undeclared:
                self._hold(account, UNKNOWN, pot.granted[UNKNOWN] - lent)
            self._hold(account, journal, lent)
        self._undeclared.discard(journal)
        self._release_unknown()

    def apply_spent(self, spent: Mapping[tuple[str, str, int], int]) -> None:
        """Apply booked spending by journal. Called after each applied batch."""
        for (journal, budget_id, window), pusd in spent.items():
            account = BudgetAccount(budget_id, window)
            pot = self._pots.get(account)
            if pot is None:
                continue
            if journal in pot.granted or journal in self._undeclared:
                key = (journal, account)
                self._spent[key] = self._spent.get(key, 0) + pusd
            else:
                self._hold(account, GONE, pot.granted.get(GONE, 0) + pusd)

    def close_journal(self, journal: str) -> None:
        """Free the unspent money of a worker that has ended and whose records are all booked."""
        for account, pot in self._pots.items():
            if journal in pot.granted or (journal, account) in self._spent:
                spent = self._spent.pop((journal, account), 0)
                rest = {name: pusd for name, pusd in pot.granted.items() if name != journal}
                rest[GONE] = rest.get(GONE, 0) + spent
                if UNKNOWN in rest and journal in self._undeclared:
                    rest[UNKNOWN] -= spent
                self._pots[account] = replace(pot, granted=rest)
        self._undeclared.discard(journal)
        self._release_unknown()

    def _release_unknown(self) -> None:
        """Free money that no worker declared, once every worker has declared its loans."""
        if self._undeclared:
            return
        for account, pot in self._pots.items():
            if UNKNOWN in pot.granted:
                rest = {name: pusd for name, pusd in pot.granted.items() if name != UNKNOWN}
                self._pots[account] = replace(pot, granted=rest)

    def _pot(self, account: BudgetAccount) -> GrantPool:
        return self._pots.get(account, GrantPool(0))

    def _hold(self, account: BudgetAccount, holder: str, pusd: int) -> None:
        pot = self._pot(account)
        self._pots[account] = replace(pot, granted={**pot.granted, holder: pusd})
