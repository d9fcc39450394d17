"""The database of the schedules: what `grants` and `repository` promise, exact and in memory."""

from collections import defaultdict
from dataclasses import dataclass

from ledger.budgets.grants import AccountBalance, BudgetAccount
from ledger.journals.records import AttemptOpened
from ledger.writing.fold import JournalItem

HOSTS = ("h1", "h2")


@dataclass
class WindowRow:
    granted: int = 0
    spent: int = 0
    highest: int = 0


@dataclass
class Life:
    """What one hold counts, by its own rules: in full until it ends, which it does once."""

    counted_pusd: int
    lost: bool = False
    ended: bool = False
    late: bool = False

    def lose(self):
        assert not self.lost
        assert not self.ended
        self.lost = True

    def end(self, cost):
        assert not self.ended or cost == self.counted_pusd, "a second, different answer"
        self.late |= self.lost and not self.ended
        self.counted_pusd, self.ended = cost, True


class Books:
    """What `grants` and `repository` promise, in memory; each method is one transaction."""

    def __init__(self, code, limits, lines):
        self.code, self.limits, self.told = code, limits, lines
        self.windows = defaultdict(WindowRow)
        self.grants = defaultdict(lambda: [0, 0])  # (account, host): granted, spent
        self.known, self.lives = {}, {}
        self.by_journal = defaultdict(int)
        self.positions = {}

    def lines(self):
        line = self.code.budget_snapshot.BudgetLine
        return [line(*of, self.limits[of[0]]) for of in self.told]

    def standing(self, host, account):
        window, mine = self.windows[account], self.grants[account, host]
        others = sum((account, name) in self.grants for name in HOSTS if name != host)
        limit = self.limits[account.budget_id]
        return AccountBalance(limit, window.granted, window.spent, mine[0], mine[1], others)

    def grow(self, host, needs):
        found = {}
        order = self.code.escrow.scope_order
        for need in sorted(needs, key=lambda each_need: order(each_need.account.budget_id)):
            now = self.standing(host, need.account)
            loan = self.code.escrow.loan_pusd(
                now.remaining_pusd, need.missing_pusd, need.hold_pusd, 1 + now.others
            )
            if loan > 0:
                window = self.windows[need.account]
                window.highest = max(window.highest, now.limit_pusd)
                window.granted += loan
                self.grants[need.account, host][0] += loan
            found[need.account] = self.standing(host, need.account)
        return found

    def shrink(self, host, account, pusd):
        mine = self.grants[account, host]
        back = min(pusd, max(0, mine[0] - mine[1]))
        mine[0] -= back
        self.windows[account].granted -= back
        return self.standing(host, account)

    def standings(self, host, *, unspent=False):
        return {
            account: self.standing(host, account)
            for (account, name), mine in list(self.grants.items())
            if name == host and not (unspent and mine[0] == mine[1])
        }

    def used_of_windows(self):
        return {account: row.spent for account, row in self.windows.items()}

    def spent_by_journal(self, journals):
        among = set(journals)
        return {key: pusd for key, pusd in self.by_journal.items() if key[0] in among}

    def apply(self, host, journal, records, after=None):
        """Records and the position after them; returns what the desk is told."""
        items = [JournalItem(journal, 0, 0, b"", record) for record in records]
        fold = self.code.fold
        folded = fold.fold(items, self.known)
        assert not folded.unmatched
        for record in records:
            if isinstance(record, AttemptOpened):
                if record.attempt_id not in self.known:
                    known = fold.KnownAttempt(record, fold.AttemptStage.OPEN, record.holds)
                    self.known[record.attempt_id] = known
                    for hold in record.holds:
                        self.lives[record.attempt_id, hold] = Life(record.bound_pusd)
            else:
                self.known[record.attempt_id].stage = fold.AttemptStage.SETTLED
                self._end(record.attempt_id, record.cost_pusd)
        self._spend(host, folded)
        if after is not None:
            self.positions[journal] = after
        return folded.spent

    def _end(self, attempt_id, cost):
        for hold in self.known[attempt_id].holds:
            self.lives[attempt_id, hold].end(cost)

    def settle_lost(self, host, journal, open_ids):
        fold = self.code.fold
        lost = [self.known[name] for name in open_ids]
        folded = fold.fold_lost(((journal, item) for item in lost), 1)
        for item in lost:
            item.stage = fold.AttemptStage.LOST
            for hold in item.holds:
                self.lives[item.opened.attempt_id, hold].lose()
        self._spend(host, folded)
        return folded.spent

    def _spend(self, host, folded):
        for (journal, budget_id, start), pusd in folded.spent.items():
            account = BudgetAccount(budget_id, start)
            self.windows[account].spent += pusd
            if (account, host) in self.grants:
                self.grants[account, host][1] += pusd
            self.by_journal[journal, account] += pusd
        for (budget_id, start), change in folded.booked.items():  # soft budgets count it
            self.windows[BudgetAccount(budget_id, start)].spent += change.counted_pusd
