"""A desk's loans: the host's grants, cut into its workers' slices. Pure bookkeeping.

Every account is an `escrow.GrantPool` whose holders are journals: what a worker was lent counts as
gone until it gives it back, or until its journal ended and the books say what it spent. After a
restart the money of earlier grants is held by nobody known; it becomes free when every worker has
said what it was lent, or is buried. So no order of crashes lends the same money twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ledger.budgets.escrow import GrantPool, is_sliced, loan_pusd
from ledger.budgets.grants import AccountBalance, BudgetAccount

# Holders beside the journals, whose names contain neither.
GONE = ""  # what ended workers spent
UNKNOWN = "?"  # grants of before a restart that no worker has accounted for


class LoanBook:
    """One host's; `standings` are the accounts as the database last told them."""

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
        """Begin from the database: `journals` may all have been lent something."""
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
        """Return what this host can lend without the database.

        Not what lies idle beyond a limit that was lowered, as far as the database told of it.
        """
        room, known = self.idle_pusd(account), self.standings.get(account)
        if known is None or known.remaining_pusd >= 0:
            return room
        return min(room, max(0, room + known.remaining_pusd))

    def idle_pusd(self, account: BudgetAccount) -> int:
        """Return the part of this host's grant that is lent to nobody."""
        return self._pot(account).remaining_pusd

    def lent_pusd(self, account: BudgetAccount) -> int:
        """Return what workers were lent beyond the spending in the books."""
        return sum(
            pusd - self._spent.get((journal, account), 0)
            for journal, pusd in self._pot(account).granted.items()
            if journal not in (GONE, UNKNOWN)
        )

    def at_stake(self, journal: str) -> dict[BudgetAccount, int]:
        """Return what its worker was lent, at most, beyond what the books say it spent.

        A worker of before a restart that has said nothing may have had all that nobody accounts
        for. May be called from another thread: it reads copies of values that are replaced whole.
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
        """Whether money may be there that a worker has yet to account for."""
        return self._pot(account).granted.get(UNKNOWN, 0) > 0

    def set_grant(self, account: BudgetAccount, standing: AccountBalance) -> None:
        """The database changed or confirmed this host's grant.

        Of an account that was forgotten nothing is lent but what was spent.
        """
        pot = self._pots.get(account)
        if pot is None:
            spent = standing.mine_spent_pusd
            pot = GrantPool(0, {GONE: spent} if spent else {})
        self._pots[account] = replace(pot, limit_pusd=standing.mine_pusd)
        self.standings[account] = standing

    def forget_unmade(self, account: BudgetAccount) -> None:
        """Forget an account that the database did not make: whoever asks of it is refused."""
        if not self.is_made(account) and account in self.standings:
            del self.standings[account], self._pots[account]

    def forget_ended(self, start_s: int) -> None:
        """Forget windows that began before, of which nothing is lent: nobody asks of them again.

        If a clock was ahead, somebody does: then the database says what was spent.
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
        """Return whether the database has the account, as far as it has told."""
        known = self.standings.get(account)
        return known is not None and known.made

    def lend(
        self, journal: str, account: BudgetAccount, *, asked_pusd: int, hold_pusd: int, holders: int
    ) -> tuple[int, bool]:
        """Lend at least what is asked (there is room); returns the loan, and if little is left."""
        room = self.remaining_pusd(account)
        assert asked_pusd <= room
        known = self.standings.get(account)
        total = room + (max(0, known.remaining_pusd) if known else 0)
        loan = max(asked_pusd, min(loan_pusd(total, asked_pusd, hold_pusd, holders), room))
        self._hold(account, journal, self._pot(account).granted.get(journal, 0) + loan)
        return loan, not is_sliced(total - loan, hold_pusd, holders)

    def record_return(self, journal: str, account: BudgetAccount, pusd: int) -> None:
        pot = self._pots.get(account)
        if pot is not None:
            self._hold(account, journal, pot.granted.get(journal, 0) - pusd)

    def declare(self, journal: str, granted: Mapping[BudgetAccount, int]) -> None:
        """A worker says what it was lent in all, spent money included: that is the truth.

        Of an account that it forgot, it has what the books say it spent there.
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
        """Apply the spending in the books, by journal; called after each applied batch."""
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
        """Its worker is gone and all of it is in the books: what it did not spend is free."""
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
        """Once nobody is missing, what no one accounted for was not lent."""
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
