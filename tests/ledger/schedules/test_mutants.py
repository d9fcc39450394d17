"""Faults planted in the budget code, one line each, in memory: the schedules find every one."""

import gc

import pytest
from schedule_code import Code
from schedule_steps import play

from ledger.budgets import escrow

SEEDS = 1500  # a mutant that survives so many is not found

MUTANTS = {
    # escrow
    "holds do not see what was spent": (
        "escrow", "if amount_pusd > granted - held - spent:", "if amount_pusd > granted - held:"),
    "holds do not see other holds": (
        "escrow", "if amount_pusd > granted - held - spent:", "if amount_pusd > granted - spent:"),
    "one unit too much is held": (
        "escrow", "if amount_pusd > granted - held - spent:",
        "if amount_pusd > granted - held - spent + 1:"),
    "a settle forgets the cost": ("escrow", "spent + actual_pusd))", "spent))"),
    "a settle keeps the hold": (
        "escrow", "(granted, held - held_pusd, spent", "(granted, held, spent"),
    "free money ignores spending": (
        "escrow", "return self.granted_pusd - self.held_pusd - self.spent_pusd",
        "return self.granted_pusd - self.held_pusd"),
    "one unit beyond the limit is granted": (
        "escrow", "if missing_pusd > room:", "if missing_pusd > room + 1:"),
    "the last unit is not granted": (
        "escrow", "if missing_pusd > room:", "if missing_pusd >= room:"),
    "a pot has always room": (
        "escrow", "return self.limit_pusd - self.granted_pusd", "return self.limit_pusd"),
    "narrow scopes first": (
        "escrow", "return BY_PREFIX[kind].width, scope",
        "return -BY_PREFIX[kind].width, scope"),
    # loans
    "old grants are free after a restart": (
        "loans", "UNKNOWN: standing.mine_pusd - gone", "UNKNOWN: 0"),
    "old spending is free after a restart": (
        "loans", "gone = standing.mine_spent_pusd - alive", "gone = 0"),
    "returns are not booked": (
        "loans", "pot.granted.get(journal, 0) - pusd)", "pot.granted.get(journal, 0))"),
    "returns are booked twice": (
        "loans", "pot.granted.get(journal, 0) - pusd)", "pot.granted.get(journal, 0) - 2 * pusd)"),
    "a declaration is not believed": (
        "loans", "self._hold(account, journal, lent)",
        "self._hold(account, journal, pot.granted.get(journal, 0))"),
    "the first to declare frees all": (
        "loans", "if self._undeclared:", "if self._undeclared is None:"),
    "late costs of the gone are not seen": (
        "loans", "pot.granted.get(GONE, 0) + pusd)", "pot.granted.get(GONE, 0))"),
    "the dead spent nothing": (
        "loans", "rest[GONE] = rest.get(GONE, 0) + spent", "rest[GONE] = rest.get(GONE, 0)"),
    "the dead keep their loans": (
        "loans", "for name, pusd in pot.granted.items() if name != journal}",
        "for name, pusd in pot.granted.items()}"),
    "applied spending is forgotten": (
        "loans", "self._spent[key] = self._spent.get(key, 0) + pusd", "self._spent[key] = 0"),
    "all hosts' grants are this host's": (
        "loans", "limit_pusd=standing.mine_pusd)", "limit_pusd=standing.granted_pusd)"),
    # windows
    "a day has two days": ("windows", "timedelta(days=1)", "timedelta(days=2)"),
    "midnight is UTC's": (
        "windows", "day.day, tzinfo=zone, fold=0)", "day.day, tzinfo=UTC, fold=0)"),
    "the date is UTC's": (
        "windows", "datetime.fromtimestamp(at_s, tz=zone)", "datetime.fromtimestamp(at_s, tz=UTC)"),
    "a month begins today": ("windows", "first = today.replace(day=1)", "first = today"),
    # fold
    "settles count again": (
        "fold", "elif attempt.stage is not AttemptStage.SETTLED:", "elif attempt:"),
    "late costs come on top": ("fold", "_spend(folded, journal, hold, cost - counted)",
                               "_spend(folded, journal, hold, cost)"),
    "a lost soft hold costs nothing": (
        "fold", "amount = hold.amount_pusd or opened.bound_pusd  #",
        "amount = hold.amount_pusd  #"),
    # desk
    "releases count again": (
        "client", "self._held.pop(attempt_id, ())", "self._held.get(attempt_id, ())"),
    "holds that suffice are not taken": ("client", "slices[account] = piece\n", "pass\n"),
    "a refusal keeps what was taken": (
        "client", "self._undo(taken, bound_pusd)\n        if answer.away:", "if answer.away:"),
    "nobody waits and yet it is held": (
        "client", "if waited_for and asked is not None:", "if asked is not None:"),
    "returned money is kept": (
        "client", "granted_pusd=piece.granted_pusd - piece.free_pusd",
        "granted_pusd=piece.granted_pusd"),
    "only free money is declared": (
        "client", "wire.amount(key, piece.granted_pusd) for key",
        "wire.amount(key, piece.free_pusd) for key"),
    # desk_server
    "nothing is called back": (
        "broker", "await self._recall(short)", "await asyncio.sleep(0, silent)"),
    "more is missing than is": (
        "loan_needs", "GrantNeed(account, missing, ", "GrantNeed(account, wish.asked_pusd, "),
    "nothing is shared": (
        "broker", "standing.remaining_pusd >= idle:", "standing.remaining_pusd < idle:"),
    "a lowered limit is not felt": (
        "budget_snapshot", "or standing.remaining_pusd < 0", "or False"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it stops midway
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_found(name):
    words = noticed(Code(MUTANTS[name]))
    gc.collect()  # what broke off leaves coroutines: no later test shall be warned of them
    print(words)
    assert words, f"{SEEDS} schedules did not notice"


def noticed(code):
    for seed in range(SEEDS):
        try:
            play(code, seed)
        except Exception as fault:  # noqa: BLE001 - whatever gives it away
            return f"found by schedule {seed}: {type(fault).__name__}"
    return ""


def test_a_text_that_is_gone_fails():
    with pytest.raises(AssertionError, match="0 times"):
        Code(("escrow", "no such line", "nor this"))


def test_the_code_itself_is_untouched_by_a_mutant():
    changed = Code(MUTANTS["holds do not see what was spent"]).escrow
    piece = (10, 0, 10)
    assert escrow.hold(escrow.Slice(*piece), 5) is None
    assert changed.hold(changed.Slice(*piece), 5) is not None
