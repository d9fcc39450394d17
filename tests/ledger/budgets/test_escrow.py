from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ledger.budgets.escrow import (
    EscrowError,
    GrantPool,
    Slice,
    account_order,
    budget_key,
    hold,
    is_sliced,
    loan_pusd,
    scope_order,
    settle,
)
from ledger.budgets.scopes import prefixes


def lend(pool, worker, piece, amount, *, holders):
    """Let a worker have what it misses for one hold, as `loans` lends; None without room."""
    missing = amount - piece.free_pusd
    if missing <= 0:
        return pool, piece
    loan = loan_pusd(pool.remaining_pusd, missing, amount, holders)
    if not loan:
        return None
    granted = {**pool.granted, worker: pool.granted.get(worker, 0) + loan}
    return replace(pool, granted=granted), piece._replace(granted_pusd=piece.granted_pusd + loan)


def give_back(pool, worker, piece, most=10**9):
    """Let a worker return what it does not hold, `most` of it, as a recall does."""
    amount = min(max(0, piece.free_pusd), most)
    granted = {**pool.granted, worker: pool.granted.get(worker, 0) - amount}
    piece = piece._replace(granted_pusd=piece.granted_pusd - amount)
    return replace(pool, granted=granted), piece


def test_the_fixed_order_goes_from_wide_to_narrow():
    scopes = ["model:gpt-4o", "key:k1", "global", "team:search@day", "org:acme", "team:ads@month"]
    assert sorted(scopes, key=scope_order) == [
        "global",
        "org:acme",
        "team:ads@month",
        "team:search@day",
        "key:k1",
        "model:gpt-4o",
    ]
    assert {scope_order(kind)[0] for kind in prefixes()} == set(range(len(prefixes())))
    with pytest.raises(EscrowError, match="planet"):
        scope_order("planet:earth")


def test_a_scope_has_an_account_per_period():
    assert budget_key("team:search", "day") != budget_key("team:search", "month")
    assert scope_order(budget_key("global", "day"))[0] == 0


def test_a_dearer_settle_overdraws_visibly_and_stops_holds():
    piece = settle(Slice(100, held_pusd=100), 100, 130)
    assert (piece.free_pusd, piece.overdrawn_pusd) == (-30, 30)
    assert hold(piece, 0) is None


def test_small_remainders_are_lent_one_hold_at_a_time():
    assert is_sliced(8 * 10 * 4, 10, 4)
    assert not is_sliced(8 * 10 * 4 - 1, 10, 4)
    assert not is_sliced(100, 0, 1)
    assert loan_pusd(319, 10, 10, 4) == 10
    assert loan_pusd(320, 10, 10, 4) == 320 // 16
    assert loan_pusd(9, 10, 10, 4) == 0
    assert loan_pusd(10, 10, 10, 4) == 10, "the last of it is lent too"
    with pytest.raises(EscrowError):
        is_sliced(1, 1, 0)


def test_a_lowered_limit_grants_nothing_until_money_came_back():
    pot = GrantPool(50, {"w1": 80})
    assert pot.remaining_pusd == -30
    assert lend(pot, "w2", Slice(), 1, holders=2) is None
    pot, piece = give_back(pot, "w1", Slice(80, 0, 20), 40)
    assert (pot.remaining_pusd, piece.free_pusd) == (10, 20)


def test_steps_that_break_an_invariant_are_bugs():
    with pytest.raises(EscrowError, match="does not carry"):
        settle(Slice(10, 5), 6, 0)
    with pytest.raises(EscrowError, match="negative"):
        hold(Slice(10), -1)


class Budget(RuleBasedStateMachine):
    """Workers hold, settle and return in any order; nothing is overspent or falsely refused."""

    LIMIT = 1000
    WORKERS = ("w1", "w2", "w3")

    def __init__(self):
        super().__init__()
        self.pot = GrantPool(self.LIMIT)
        self.slices = {worker: Slice() for worker in self.WORKERS}
        self.open = []

    def recall(self, but):
        for worker in self.WORKERS:
            if worker != but:
                self.pot, self.slices[worker] = give_back(self.pot, worker, self.slices[worker])

    @rule(worker=st.sampled_from(WORKERS), amount=st.integers(0, 300))
    def admit(self, worker, amount):
        lent = lend(self.pot, worker, self.slices[worker], amount, holders=3)
        if lent is None:
            self.recall(worker)
            lent = lend(self.pot, worker, self.slices[worker], amount, holders=3)
        counted = sum(slice_.held_pusd + slice_.spent_pusd for slice_ in self.slices.values())
        if lent is None:
            assert counted + amount > self.LIMIT  # refused only when the money is not there
            return
        self.pot, piece = lent
        held = hold(piece, amount)
        assert held is not None
        self.slices[worker] = held
        self.open.append((worker, amount))
        assert counted + amount <= self.LIMIT

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def settle(self, data):
        place = data.draw(st.integers(0, len(self.open) - 1))
        worker, amount = self.open.pop(place)
        actual = data.draw(st.integers(0, amount))
        self.slices[worker] = settle(self.slices[worker], amount, actual)

    @rule(worker=st.sampled_from(WORKERS), amount=st.integers(0, 300))
    def return_some(self, worker, amount):
        self.pot, self.slices[worker] = give_back(self.pot, worker, self.slices[worker], amount)

    @invariant()
    def grants_stay_within_the_limit_and_spending_within_the_grants(self):
        assert self.pot.granted_pusd <= self.LIMIT
        for worker, piece in self.slices.items():
            assert piece.granted_pusd == self.pot.granted.get(worker, 0)
            assert piece.free_pusd >= 0


TestBudget = Budget.TestCase


def test_windows_have_one_order_of_any_release():
    ids = ["tag:a@day", "global@month", "new:x@day", "team:b@month", "external@day", "team:b@day"]
    accounts = [(name, start) for name in ids for start in (2, 1)]
    ordered = sorted(accounts, key=lambda account: account_order(*account))
    names = ["global@month", "external@day", "team:b@day", "team:b@month", "tag:a@day", "new:x@day"]
    assert ordered == [(name, start) for name in names for start in (1, 2)]
