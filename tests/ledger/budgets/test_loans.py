"""The loan book against an oracle: whatever happens in whatever order, no money is lent twice."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.budgets.grants import AccountBalance, BudgetAccount
from ledger.budgets.loans import LoanBook

ACCOUNT = BudgetAccount("a@day", 5)
LIMIT = 1000


class Workers:
    """What is true: each worker's loan and spending, and the host's grant in the database."""

    def __init__(self):
        self.lent, self.spent, self.applied = {}, {}, {}
        self.gone, self.grant = 0, 0
        self.book = LoanBook()

    def standing(self):
        applied = self.gone + sum(self.applied.values())
        return AccountBalance(LIMIT, self.grant, applied, self.grant, applied, 0)

    def promised(self):
        """Money that someone may spend or has spent."""
        return self.gone + sum(self.lent.values())

    def borrow(self, name, amount):
        room = self.book.remaining_pusd(ACCOUNT)
        if amount > room:
            self.grant = min(LIMIT, self.grant + amount - room)
            self.book.set_grant(ACCOUNT, self.standing())
        if amount <= self.book.remaining_pusd(ACCOUNT):
            loan, _ = self.book.lend(name, ACCOUNT, asked_pusd=amount, hold_pusd=amount, holders=3)
            self.lent[name] = self.lent.get(name, 0) + loan

    def give_back(self, name, amount):
        free = self.lent.get(name, 0) - self.spent.get(name, 0)
        amount = min(amount, free)
        if amount > 0:
            self.lent[name] -= amount
            self.book.record_return(name, ACCOUNT, amount)

    def spend(self, name, amount):
        free = self.lent.get(name, 0) - self.spent.get(name, 0)
        self.spent[name] = self.spent.get(name, 0) + min(amount, free)

    def apply(self, name):
        delta = self.spent.get(name, 0) - self.applied.get(name, 0)
        if delta:
            self.applied[name] = self.spent[name]
            self.book.apply_spent({(name, *vars_of(ACCOUNT)): delta})

    def die(self, name):
        self.apply(name)
        self.book.close_journal(name)
        self.gone += self.spent.pop(name, 0)
        self.lent.pop(name, None)
        self.applied.pop(name, None)

    def restart(self):
        self.book = LoanBook()
        spent = {(name, ACCOUNT): pusd for name, pusd in self.applied.items() if pusd}
        self.book.restore(list("xyz"), {ACCOUNT: self.standing()}, spent)

    def forget(self):
        """The clock is months ahead for a moment."""
        self.book.forget_ended(10**9)

    def declare(self, name):
        self.book.declare(name, {ACCOUNT: self.lent.get(name, 0)})


def vars_of(account):
    return account.budget_id, account.window


STEPS = st.tuples(
    st.sampled_from(
        [
            "borrow",
            "give_back",
            "spend",
            "apply",
            "die",
            "restart",
            "declare",
            "forget",
        ]
    ),
    st.sampled_from("xyz"),
    st.integers(1, 400),
)


@given(st.lists(STEPS, max_size=60))
def test_no_order_of_events_lends_more_than_the_limit(steps):
    workers = Workers()
    for action, name, amount in steps:
        if action in ("borrow", "give_back", "spend"):
            if action == "borrow" and name in workers.book._undeclared:
                workers.declare(name)  # a worker's first words
            if action == "give_back" and name in workers.book._undeclared:
                continue
            getattr(workers, action)(name, amount)
        elif action in ("restart", "forget"):
            getattr(workers, action)()
        else:
            getattr(workers, action)(name)
        assert workers.promised() <= workers.grant <= LIMIT


@given(st.lists(STEPS, max_size=40))
def test_once_everyone_ended_all_that_was_not_spent_is_free(steps):
    workers = Workers()
    for action, name, amount in steps:
        if action in ("borrow", "spend"):
            if name in workers.book._undeclared:
                workers.declare(name)
            getattr(workers, action)(name, amount)
        elif action == "restart":
            workers.restart()
    for name in "xyz":
        workers.die(name)
    assert workers.book.lent_pusd(ACCOUNT) == 0
    assert workers.book.remaining_pusd(ACCOUNT) == workers.grant - workers.gone


def test_what_is_at_stake_is_what_a_worker_was_lent_beyond_what_is_booked() -> None:
    workers = Workers()
    workers.borrow("x", 300)
    workers.borrow("y", 200)
    workers.spend("x", 120)
    workers.apply("x")
    lent = workers.lent["x"]
    assert workers.book.at_stake("x") == {ACCOUNT: lent - 120}
    assert workers.book.at_stake("z") == {}
    assert workers.book.at_stake("nobody") == {}


def test_after_a_restart_a_silent_worker_may_have_had_all_that_nobody_accounts_for() -> None:
    workers = Workers()
    for name, amount in (("x", 300), ("y", 200)):
        workers.borrow(name, amount)
    workers.spend("x", 120)
    workers.apply("x")
    workers.restart()
    assert workers.book.at_stake("y") == {ACCOUNT: workers.grant - 120}
    workers.declare("x")
    assert workers.book.at_stake("y") == {ACCOUNT: workers.grant - workers.lent["x"]}
    assert workers.book.at_stake("x") == {ACCOUNT: workers.lent["x"] - 120}


def test_after_a_restart_nothing_is_lent_beyond_a_limit_that_was_lowered() -> None:
    """Red before: until the desk had given it back, what lay idle beyond the limit was lent."""
    book = LoanBook()
    book.restore([], {ACCOUNT: AccountBalance(500, 900, 300, 700, 100, 1)}, {})
    assert book.remaining_pusd(ACCOUNT) == 600 - 400
    book.restore([], {ACCOUNT: AccountBalance(150, 900, 300, 700, 100, 1)}, {})
    assert book.remaining_pusd(ACCOUNT) == 0


def test_a_worker_that_forgot_an_account_has_what_the_books_say_it_spent():
    """Red before: what it had spent there was lent again."""
    book, standing = LoanBook(), AccountBalance(LIMIT, LIMIT, 100, LIMIT, 100, 0)
    book.restore(["w"], {ACCOUNT: standing}, {("w", ACCOUNT): 100})
    book.declare("w", {})
    assert book.remaining_pusd(ACCOUNT) == LIMIT - 100


def test_windows_that_ended_long_ago_are_forgotten_unless_something_is_lent() -> None:
    """Else a desk would keep each day's runs for as long as it lives."""
    book = LoanBook()
    old, lent, new = (BudgetAccount("tag:run=a@day", start) for start in (1, 2, 9))
    for account in (old, lent, new):
        book.set_grant(account, AccountBalance(10, 10, 0, 10, 0, 0))
    book.lend("j", lent, asked_pusd=3, hold_pusd=3, holders=1)
    book.forget_ended(9)
    assert set(book.standings) == {lent, new}
    assert book.idle_pusd(old) == 0
    assert book.lent_pusd(lent) > 0


def test_what_was_spent_of_a_window_that_was_forgotten_is_not_lent_again() -> None:
    """Red before: a clock that was months ahead for a second gave each budget its limit again."""
    workers = Workers()
    workers.borrow("x", 400)
    workers.spend("x", 400)
    workers.die("x")
    workers.forget()
    workers.borrow("y", 400)
    for _ in range(5):
        workers.borrow("y", 200)
    assert workers.promised() <= LIMIT
