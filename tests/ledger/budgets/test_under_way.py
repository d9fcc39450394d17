"""A budget counts what it found under way when it was declared, and what nobody had read yet."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from ledger.budgets import scopes
from ledger.budgets.binding import BudgetLine
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow, spent_by_journal, standings
from ledger.budgets.scopes import AttemptRows, BudgetReader, BudgetScope, NameRule
from ledger.budgets.states import budget_states
from ledger.budgets.under_way import BudgetsInForce, SplitHolds
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.journals.reader import JournalOffset
from ledger.journals.records import Hold
from ledger.orm.budgets import NO_HOST, BudgetWindowRow, GrantRow
from ledger.verify.budgets import BUDGET_CHECKS
from ledger.verify.checks import holds_end
from ledger.writing.fold import JournalItem
from ledger.writing.repository import JournalMove, LedgerRepository

AT_US = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()) * 10**6
HOUR_US = 3600 * 10**6
TEAM = BudgetSpec("team:search", "month", 10_000, hard=True, timezone="UTC")
SOFT = replace(TEAM, hard=False)
EACH = replace(TEAM, scope="user:*")
EAST = replace(TEAM, timezone="Asia/Tokyo")
MONTH = window_at("month", "UTC", AT_US // 10**6).start_s
HOME = BudgetAccount("team:search@month", MONTH)


@pytest.fixture
def books(engine, opened, settled):
    """A host's books; `open` and `settle` name an attempt by its number."""
    repository = LedgerRepository(engine, host="h")
    places = iter(range(10**6))

    def write(*records):
        items = [JournalItem("j", 1, next(places), b"", record) for record in records]
        begin = JournalOffset(1, 0)
        return repository.apply(items, [JournalMove("j", "w", begin, begin)], at_us=AT_US)

    def begun(number, bound, **changes):
        fields = {"opened_us": AT_US - HOUR_US, "holds": (), **changes}
        return opened(number, bound_pusd=bound, **fields)

    def ended(number, cost):
        return settled(number, settled_us=AT_US + number, cost_pusd=cost, compared=())

    def apply(*budgets, at_us=AT_US):
        declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=at_us)

    def spent(account=HOME):
        table = BudgetWindowRow
        query = select(table.spent_pusd).where(
            table.budget_id == account.budget_id, table.window == account.window
        )
        with engine.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

    def owed(account=HOME):
        """What stands behind no host: granted, and spent of it."""
        query = select(GrantRow.granted_pusd, GrantRow.spent_pusd).where(
            GrantRow.budget_id == account.budget_id,
            GrantRow.window == account.window,
            GrantRow.host == NO_HOST,
        )
        with engine.connect() as connection:
            return tuple(connection.execute(query).one())

    def room(account=HOME):
        """What a host can be granted; nothing is."""
        return grow(engine, "h", [GrantNeed(account, 10**9, 10**9)])[account].remaining_pusd

    def faults():
        with engine.connect() as connection:
            return [item for check in (holds_end, *BUDGET_CHECKS) for item in check(connection)]

    return SimpleNamespace(
        write=write, begun=begun, ended=ended, apply=apply, spent=spent, owed=owed, room=room,
        faults=faults, engine=engine, repository=repository,
    )  # fmt: skip


def test_what_is_under_way_is_owed_at_its_bound_until_it_ends(books) -> None:
    books.write(books.begun(1, 3_000), books.begun(2, 500, team_id="ads"))
    books.apply(TEAM)
    assert (books.spent(), books.owed(), books.room()) == (0, (3_000, 0), 7_000)
    with books.engine.connect() as connection:
        (state,) = budget_states(connection, AT_US)
    assert (state.held_pusd, state.remaining_pusd) == (3_000, 7_000)
    assert books.faults() == []
    books.write(books.ended(1, 1_200), books.ended(2, 400))
    assert (books.spent(), books.owed(), books.room()) == (1_200, (1_200, 1_200), 8_800)
    assert spent_by_journal(books.engine, ["j"]) == {}, "no desk lent it"
    assert books.faults() == []


def test_what_was_not_read_when_the_budget_was_declared_counts(books) -> None:
    books.apply(TEAM)
    books.write(books.begun(1, 3_000), books.begun(2, 4_000), books.ended(1, 1_200))
    assert (books.spent(), books.owed(), books.room()) == (1_200, (5_200, 1_200), 4_800)
    assert books.faults() == []
    assert books.repository.settle_lost("j", at_us=AT_US).settled == 1
    assert (books.spent(), books.owed()) == (5_200, (5_200, 5_200))
    assert books.faults() == []
    books.write(books.ended(2, 1))  # evidence comes late
    assert (books.spent(), books.owed()) == (1_201, (1_201, 1_201))
    assert books.faults() == []


def test_a_budget_begins_with_the_window_that_it_was_declared_in(books) -> None:
    books.apply(TEAM)
    last_month = AT_US - 30 * 24 * HOUR_US
    books.write(books.begun(1, 3_000, opened_us=last_month), books.ended(1, 3_000))
    assert (books.spent(), books.room()) == (0, 10_000)
    assert books.faults() == []


@pytest.mark.parametrize("read", [True, False], ids=["read", "unread"])
def test_what_a_soft_budget_counted_is_nobodys_once_it_is_hard(books, read: bool) -> None:
    """It spent what no host was granted: hosts were granted as much again."""
    attempt = books.begun(1, 5_000, holds=(Hold(HOME.budget_id, MONTH, 0),))
    books.apply(SOFT)
    if read:
        books.write(attempt)
    books.apply(TEAM)
    if not read:
        books.write(attempt)
    grow(books.engine, "h", [GrantNeed(HOME, 5_000, 5_000)])
    hold = Hold(HOME.budget_id, MONTH, 5_000)
    books.write(books.begun(2, 5_000, holds=(hold,)), books.ended(1, 5_000), books.ended(2, 5_000))
    assert books.spent() == 10_000
    assert (books.room(), standings(books.engine, "h")[HOME].mine_spent_pusd) == (0, 5_000)
    assert books.faults() == []


def test_a_lost_attempt_of_a_soft_budget_is_corrected_once_it_is_hard(books) -> None:
    books.apply(SOFT)
    books.write(books.begun(1, 5_000, holds=(Hold(HOME.budget_id, MONTH, 0),)))
    assert books.repository.settle_lost("j", at_us=AT_US).settled == 1
    assert books.spent() == 5_000
    books.apply(TEAM)
    assert (books.owed(), books.room()) == ((5_000, 5_000), 5_000)
    books.write(books.ended(1, 100))
    assert (books.spent(), books.owed(), books.room()) == (100, (100, 100), 9_900)
    assert books.faults() == []


def test_a_scope_that_the_registry_gains_books_on_its_own_budgets(opened, monkeypatch) -> None:
    """Budgets of one attempt are remembered for the next, by all that a scope may read of it."""
    added = BudgetScope(
        "route", 9, "route", NameRule.IDENTITY, AttemptRows.COLUMN, BudgetReader.NOBODY, "policy",
        of_request=lambda attempt, _: (attempt.policy,),
    )  # fmt: skip
    monkeypatch.setattr(scopes, "_OF_REQUEST", [(added, added.of_request)])
    budgets = BudgetsInForce()
    budgets._newest = 1
    for name in ("blue", "red"):
        line = BudgetLine(f"route:{name}@month", f"route:{name}", "month", "UTC", 10_000, True)
        budgets._by_scope[line.scope] = [line]
    for name in ("blue", "red"):
        booked = budgets.split(opened(policy=name, bound_pusd=5, holds=())).booked
        assert [hold.scope for hold in booked] == [f"route:{name}@month"]


def test_control_without_a_look_at_new_records_their_cost_is_forgotten(books, monkeypatch) -> None:
    monkeypatch.setattr(BudgetsInForce, "split", lambda _, opened: SplitHolds(opened.holds))
    books.apply(TEAM)
    books.write(books.begun(1, 3_000), books.ended(1, 1_200))
    assert not books.spent()


def test_a_default_owes_for_each(books) -> None:
    ann = BudgetAccount("user:ann@month", MONTH)
    books.write(books.begun(1, 700, user_id="ann"), books.begun(2, 9))
    books.apply(EACH)
    books.write(books.begun(3, 50, user_id="ann"))
    assert (books.owed(ann), books.room(ann)) == ((750, 0), 9_250)
    books.write(*[books.ended(number, 8) for number in (1, 2, 3)])
    assert (books.spent(ann), books.owed(ann)) == (16, (16, 16))
    assert books.faults() == []


DAY = replace(TEAM, period="day")
TOKYO = replace(DAY, timezone="Asia/Tokyo")


@pytest.mark.parametrize("read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("scope", ["team:search", "team:*"])
def test_what_is_under_way_counts_in_the_calendar_that_was_declared_meanwhile(
    books, scope, read
) -> None:
    """Its worker holds in a window of the old calendar, which nobody looks at any more."""
    old, new = (window_at("day", each.timezone, AT_US // 10**6).start_s for each in (DAY, TOKYO))
    assert old != new
    before, after = (BudgetAccount("team:search@day", start) for start in (old, new))
    books.apply(replace(DAY, scope=scope))
    grow(books.engine, "h", [GrantNeed(before, 3_000, 3_000)])
    attempt = books.begun(1, 3_000, holds=(Hold(before.budget_id, old, 3_000),))
    if read:
        books.write(attempt)
    books.apply(replace(TOKYO, scope=scope))
    if not read:
        books.write(attempt)
    assert (books.owed(after), books.room(after)) == ((3_000, 0), 7_000)
    assert books.faults() == []
    books.write(books.ended(1, 1_200))
    assert (books.spent(after), books.room(after)) == (1_200, 8_800)
    assert not books.spent(before)
    assert books.faults() == []


@pytest.mark.parametrize("scope", ["key:maker", "key:*"])
def test_a_key_of_a_key_owes_on_its_makers_budget_though_nobody_had_read_it(books, scope) -> None:
    """The budget was declared while it was under way: its open record names the makers."""
    maker = BudgetAccount("key:maker@month", MONTH)
    books.apply(replace(TEAM, scope=scope))
    books.write(
        books.begun(1, 700, key_id="made", counts_on=("maker", "older")),
        books.begun(2, 50, key_id="maker"),
        books.begun(3, 9, key_id="other"),
    )
    assert (books.owed(maker), books.room(maker)) == ((750, 0), 9_250)
    books.write(*[books.ended(number, 8) for number in (1, 2, 3)])
    assert (books.spent(maker), books.owed(maker)) == (16, (16, 16))
    assert books.faults() == []


def test_who_holds_on_every_budget_is_not_looked_at_twice(books, opened) -> None:
    """The usual case answers with the holds as they came."""
    in_force = BudgetsInForce()
    assert in_force.split(books.begun(1, 5)).booked == ()
    books.apply(TEAM)
    with books.engine.begin() as connection:
        in_force.refresh(connection)
    whole = books.begun(1, 5, holds=(Hold(HOME.budget_id, MONTH, 5),))
    assert in_force.split(whole).held is whole.holds
    assert in_force.split(books.begun(2, 5)).booked == (Hold(HOME.budget_id, MONTH, 5),)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_declared_meanwhile_nothing_is_spent_twice_or_forgotten(books, seed) -> None:
    """Workers know of budgets late, writers read late, and some attempts are lost."""
    chance = random.Random(seed)
    known: tuple[BudgetSpec, ...] = ()  # by workers
    unread, under_way, costs = [], {}, {}
    declared: tuple[BudgetSpec, ...] = ()
    for number in range(1, 60):
        step = chance.random()
        if step < 0.15:
            declared = chance.choice([(TEAM,), (SOFT,), (TEAM, EACH), (EACH,), (), (EAST,)])
            books.apply(*declared, at_us=AT_US + number)
            continue
        if step < 0.25:
            known = declared
        bound = chance.randrange(1, 200)
        holds = []
        for spec in known:
            start = window_at("month", spec.timezone, AT_US // 10**6).start_s
            account = BudgetAccount(f"{spec.scope.replace('*', 'ann')}@month", start)
            amount = bound if spec.hard else 0
            if amount:
                grow(books.engine, "h", [GrantNeed(account, amount, amount)])
            holds.append(Hold(account.budget_id, start, amount))
        unread.append(books.begun(number, bound, user_id="ann", holds=tuple(holds)))
        under_way[number] = bound
        if chance.random() < 0.5 and under_way:
            ending = chance.choice(sorted(under_way))
            costs[ending] = chance.randrange(under_way.pop(ending) + 1)
            unread.append(books.ended(ending, costs[ending]))
        if chance.random() < 0.4:
            books.write(*unread)
            unread = []
    books.write(*unread)
    books.repository.settle_lost("j", at_us=AT_US)
    books.apply(TEAM, EACH, at_us=AT_US + 100)
    total = sum(costs.values()) + sum(under_way.values())
    for account in (HOME, replace(HOME, budget_id="user:ann@month")):
        assert books.spent(account) == total
        granted, spent = books.owed(account)
        assert granted == spent
        assert books.room(account) <= TEAM.limit_pusd - total
