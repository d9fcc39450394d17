"""A budget that is declared in mid-period begins with what its window has seen already."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from sqlalchemy import event, select

from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import (
    BudgetAccount,
    GrantNeed,
    grow,
    shrink,
    spent_by_journal,
    standings,
)
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.journals.records import Hold
from ledger.orm.budgets import NO_HOST, BudgetWindowRow, GrantRow
from ledger.verify.budgets import grants_are_within_limits, totals_equal_sums
from ledger.verify.checks import holds_end
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository


def us(*when):
    return int(datetime(*when, tzinfo=UTC).timestamp()) * 10**6


AT_US = us(2026, 11, 20, 12)
TEAM = BudgetSpec("team:search", "month", 10_000, hard=True, timezone="UTC")
MONTH = window_at("month", "UTC", AT_US // 10**6).start_s
HOME = BudgetAccount("team:search@month", MONTH)


@pytest.fixture
def books(engine, opened, settled):
    """Applies attempts of team `search`; each is `(opened_us, cost, changes)`."""
    numbers = iter(range(1, 1000))

    def spend(opened_us, cost, **changes):
        number = next(numbers)
        changes.setdefault("holds", ())
        records = [
            opened(number, opened_us=opened_us, bound_pusd=cost, **changes),
            settled(number, settled_us=opened_us + 1, cost_pusd=cost, compared=()),
        ]
        items = [
            JournalItem("j", 1, 2 * number + place, b"", record)
            for place, record in enumerate(records)
        ]
        LedgerRepository(engine, host="h").apply(items, (), at_us=opened_us)

    def apply(*budgets, at_us=AT_US):
        declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=at_us)

    def spent():
        query = select(
            BudgetWindowRow.budget_id, BudgetWindowRow.window, BudgetWindowRow.spent_pusd
        )
        with engine.connect() as connection:
            return {BudgetAccount(*row[:2]): row[2] for row in connection.execute(query) if row[2]}

    def faults():
        with engine.connect() as connection:
            checks = (grants_are_within_limits, holds_end, totals_equal_sums)
            return [item for check in checks for item in check(connection)]

    def grantable(account=HOME, host="h"):
        """All that hosts can still be granted, taken by one of them."""
        before = standings(engine, host).get(account)
        left = before.remaining_pusd if before else 10**6
        while left > 0:
            found = grow(engine, host, [GrantNeed(account, left, left)])[account]
            if found.remaining_pusd <= 0:
                break
            left = found.remaining_pusd
        mine = standings(engine, host)[account]
        return mine.mine_pusd - mine.mine_spent_pusd

    return SimpleNamespace(
        spend=spend, apply=apply, spent=spent, faults=faults, grantable=grantable, engine=engine
    )


def test_a_budget_begins_with_what_its_window_has_seen(books):
    books.spend(us(2026, 10, 31, 23, 59), 70)  # another month
    books.spend(us(2026, 11, 1), 1000)
    books.spend(us(2026, 11, 19), 2000)
    books.spend(us(2026, 11, 19), 400, team_id="ads")
    books.apply(TEAM)
    assert books.spent() == {HOME: 3000}
    assert books.grantable() == 7000
    assert books.faults() == []


def test_declared_again_nothing_counts_twice(books):
    books.spend(us(2026, 11, 19), 3000)
    books.apply(TEAM)
    books.apply(TEAM)
    books.apply(replace(TEAM, limit_pusd=5000))
    assert books.spent() == {HOME: 3000}
    assert books.grantable() == 2000
    assert books.faults() == []


def test_what_was_spent_while_a_budget_was_away_counts_when_it_comes_back(books):
    books.apply(TEAM)
    grow(books.engine, "h", [GrantNeed(HOME, 9000, 9000)])
    books.spend(us(2026, 11, 19), 1000, holds=(Hold(HOME.budget_id, MONTH, 1000),))
    books.apply()
    books.spend(us(2026, 11, 20), 5000)
    books.apply(TEAM)
    assert books.spent() == {HOME: 6000}
    held = standings(books.engine, "h")[HOME]
    assert (held.mine_pusd, held.remaining_pusd) == (9000, -4000), "its desk may have lent it"
    assert books.faults() == []
    assert shrink(books.engine, "h", HOME, 4000).remaining_pusd == 0
    assert books.grantable() == 4000
    assert books.faults() == []


def test_another_period_is_another_account_with_its_own_past(books):
    books.spend(us(2026, 11, 2), 1000)
    books.spend(us(2026, 11, 20, 3), 200)
    books.apply(TEAM)
    books.apply(replace(TEAM, period="day"))
    day = BudgetAccount("team:search@day", window_at("day", "UTC", AT_US // 10**6).start_s)
    assert books.spent() == {HOME: 1200, day: 200}
    assert books.grantable(day) == 9800
    assert books.faults() == []


def test_another_time_zone_takes_its_attempts_along_and_back(books):
    """Between 23:00 and 24:00 UTC it is the next day in Berlin."""
    spec = replace(TEAM, period="day")
    at_us = us(2026, 11, 20, 23, 30)
    utc, berlin = (
        BudgetAccount("team:search@day", window_at("day", zone, at_us // 10**6).start_s)
        for zone in ("UTC", "Europe/Berlin")
    )
    books.apply(spec, at_us=at_us)
    grow(books.engine, "h", [GrantNeed(utc, 5000, 5000)])
    for hour, cost in ((12, 1000), (23, 300)):
        hold = Hold(utc.budget_id, utc.window, cost)
        books.spend(us(2026, 11, 20, hour, 10), cost, holds=(hold,))
    books.apply(replace(spec, timezone="Europe/Berlin"), at_us=at_us)
    assert books.spent() == {utc: 1000, berlin: 300}
    assert books.grantable(berlin) == 9700
    assert books.faults() == []
    books.apply(spec, at_us=at_us)
    assert books.spent() == {utc: 1300}
    assert books.grantable(utc) == 8700
    assert books.faults() == []


def test_a_soft_budget_that_becomes_hard_grants_only_what_is_left(books):
    books.apply(replace(TEAM, hard=False))
    books.spend(us(2026, 11, 20), 8000, holds=(Hold(HOME.budget_id, MONTH, 0),))
    books.apply(TEAM)
    assert books.spent() == {HOME: 8000}
    assert books.grantable() == 2000
    assert books.faults() == []


def test_what_a_soft_budget_counts_is_spent_of_no_hosts_grant(books):
    """Red before: it was, and a desk that had lent nothing of it lent the grant again."""
    books.apply(TEAM)
    grow(books.engine, "h", [GrantNeed(HOME, 4000, 4000)])
    books.apply(replace(TEAM, hard=False))
    books.spend(us(2026, 11, 20), 5000, holds=(Hold(HOME.budget_id, MONTH, 0),))
    assert books.spent() == {HOME: 5000}
    assert spent_by_journal(books.engine, ["j"]) == {}
    books.apply(TEAM)
    held = standings(books.engine, "h")[HOME]
    assert (held.mine_spent_pusd, held.mine_pusd, held.remaining_pusd) == (0, 4000, 1000)
    assert books.faults() == []


def test_who_spent_more_than_the_limit_before_there_was_one_gets_nothing(books):
    books.spend(us(2026, 11, 20), 25_000)
    books.apply(TEAM)
    assert books.spent() == {HOME: 25_000}
    grow(books.engine, "h", [GrantNeed(HOME, 1, 1)])
    assert standings(books.engine, "h")[HOME].mine_pusd == 0
    assert books.faults() == []


def test_booked_money_is_no_workers_and_no_hosts(books):
    """Or a restart would lend it once more when the journal's worker is gone."""
    books.spend(us(2026, 11, 20), 3000)
    books.apply(TEAM)
    assert spent_by_journal(books.engine, ["j"]) == {}
    found = grow(books.engine, "h", [GrantNeed(HOME, 1, 1)])[HOME]
    assert (found.mine_spent_pusd, found.others) == (0, 0)
    assert standings(books.engine, "h")[HOME].others == 0
    with books.engine.connect() as connection:
        query = select(GrantRow.granted_pusd, GrantRow.spent_pusd).where(GrantRow.host == NO_HOST)
        assert connection.execute(query).one() == (3000, 3000)


@pytest.mark.each_database
@pytest.mark.parametrize(
    ("scope", "cost"),
    [
        ("global", 111_111),
        ("external", 11),
        ("org:acme", 111_111),
        ("team:search", 101_111),
        ("user:u", 10),
        ("key:k2", 100),
        ("model:m2", 1),
        ("provider:openai", 1011),
        ("tag:app", 111_111),
        ("tag:app=web", 11_111),
        ("tag:app=w=e\"b's", 100_000),
        ("tag:cost centre=7", 100_000),
        ("tag:app=we", 0),
        ("tag:ap", 0),
    ],
)
def test_each_scope_finds_its_own(books, scope, cost):
    at_us = us(2026, 11, 20)
    books.spend(at_us, 1, model="m2")
    books.spend(at_us, 10, user_id="u")
    books.spend(at_us, 100, key_id="k2", backend="own", provider=None, pool="p")
    books.spend(at_us, 1000, simulated=True)
    books.spend(at_us, 10_000, team_id="ads", provider=None, backend="own", pool="p")
    odd = (("app", "w=e\"b's"), ("cost centre", "7"))
    books.spend(at_us, 100_000, provider=None, backend="own", pool="p", tags=odd)
    books.spend(at_us, 0, org_id="other", team_id="x", provider="other")
    books.apply(BudgetSpec(scope, "month", 10**6, hard=True, timezone="UTC"))
    assert books.spent() == ({BudgetAccount(f"{scope}@month", MONTH): cost} if cost else {})


@pytest.mark.each_database
def test_a_models_budget_finds_its_snapshots(books):
    at_us = us(2026, 11, 20)
    names = ("openai/gpt-4o", "openai/gpt-4o-2024-11-20", "openai/GPT-4o-20241120",
             "openai/gpt-4o-mini", "openai/gpt-4o-2024", "chat-2024-11-20")  # fmt: skip
    for place, name in enumerate(names):
        books.spend(at_us, 10**place, model=name)
    for scope, cost in (("model:openai/gpt-4o", 111), ("model:chat", 0), (f"model:{names[1]}", 10)):
        books.apply(BudgetSpec(scope, "month", 10**7, hard=True, timezone="UTC"))
        assert books.spent().get(BudgetAccount(f"{scope}@month", MONTH), 0) == cost


EVERYBODY = BudgetSpec("user:*", "month", 10_000, hard=True, timezone="UTC")


def ann(name, start=MONTH):
    return BudgetAccount(f"user:{name}@month", start)


def test_a_default_begins_for_each_with_what_the_window_has_seen_of_them(books):
    books.spend(us(2026, 11, 3), 700, user_id="ann")
    books.spend(us(2026, 11, 4), 50, user_id="bob")
    books.spend(us(2026, 11, 4), 9, user_id="cat")
    books.spend(us(2026, 10, 31), 4_000, user_id="ann")
    books.spend(us(2026, 11, 5), 1)  # nobody's
    books.apply(EVERYBODY, BudgetSpec("user:cat", "month", 20, hard=False, timezone="UTC"))
    assert books.spent() == {ann("ann"): 700, ann("bob"): 50, ann("cat"): 9}
    assert books.grantable(ann("ann")) == 9_300
    assert books.grantable(ann("bob")) == 9_950
    assert books.faults() == []
    books.apply(EVERYBODY, at_us=AT_US + 1)  # cat has none of their own any more
    assert books.spent() == {ann("ann"): 700, ann("bob"): 50, ann("cat"): 9}
    assert books.grantable(ann("cat")) == 9_991
    assert books.faults() == []


def test_a_budget_for_each_run_begins_with_what_the_window_has_seen_of_it(books):
    books.spend(us(2026, 11, 3), 700, tags=(("run", "a"), ("app", "web")))
    books.spend(us(2026, 11, 4), 50, tags=(("run", "b=c@d"),))
    books.spend(us(2026, 11, 4), 5, tags=(("app", "web"),))
    books.spend(us(2026, 10, 31), 4_000, tags=(("run", "a"),))
    books.apply(BudgetSpec("tag:run=*", "month", 10_000, hard=True, timezone="UTC"))
    spent = {"tag:run=a@month": 700, "tag:run=b=c@d@month": 50}
    assert books.spent() == {BudgetAccount(name, MONTH): pusd for name, pusd in spent.items()}
    assert books.grantable(BudgetAccount("tag:run=a@month", MONTH)) == 9_300
    assert books.faults() == []


@pytest.mark.each_database
@pytest.mark.parametrize("scope", ["tag:run=*", "user:*"])
def test_a_default_is_declared_again_in_as_many_statements_however_many_it_binds(books, scope):
    """Red before: each value was swept by itself, through all attempts of its window."""
    spec = BudgetSpec(scope, "month", 10_000, hard=True, timezone="UTC")
    soft, said = replace(spec, hard=False), []
    event.listen(books.engine, "before_cursor_execute", lambda *told: said.append(told[2]))

    def statements() -> int:
        books.apply(soft)
        said.clear()
        books.apply(spec)
        return len(said)

    counts = []
    for names in (range(2), range(2, 20)):
        for name in names:
            books.spend(us(2026, 11, 3), 10, tags=(("run", f"r{name}"),), user_id=f"u{name}")
        counts.append(statements())
    assert counts[0] == counts[1]
    assert [*books.spent().values()] == [10] * 20
    assert books.faults() == []


def test_a_sweep_makes_as_many_values_as_each_team_may_have(books, monkeypatch):
    monkeypatch.setattr("ledger.budgets.spending.VALUES_MOST", 2)
    for team, runs in (("loud", "abcd"), ("calm", "bz")):
        for run in runs:
            books.spend(us(2026, 11, 3), 1, tags=(("run", run),), team_id=team)
    books.apply(BudgetSpec("tag:run=*", "month", 10_000, hard=True, timezone="UTC"))
    with books.engine.connect() as connection:
        found = connection.execute(select(BudgetWindowRow.budget_id, BudgetWindowRow.team_id))
        assert dict(map(tuple, found)) == {
            "tag:run=a@month": "loud", "tag:run=b@month": "calm", "tag:run=c@month": "loud",
            "tag:run=z@month": "calm",
        }  # fmt: skip


def test_a_default_in_another_calendar_takes_what_it_holds_along(books):
    books.apply(EVERYBODY, at_us=us(2026, 11, 2))
    late = us(2026, 10, 31, 23, 30)  # November in Berlin
    october = window_at("month", "UTC", us(2026, 10, 31) // 10**6).start_s
    books.spend(late, 30, user_id="ann", holds=(Hold("user:ann@month", october, 0),))
    books.spend(us(2026, 11, 3), 5, user_id="ann", holds=(Hold("user:ann@month", MONTH, 0),))
    books.apply(BudgetSpec("user:*", "month", 10_000, hard=True, timezone="Europe/Berlin"))
    berlin = window_at("month", "Europe/Berlin", AT_US // 10**6).start_s
    assert books.spent() == {ann("ann", berlin): 35}
    assert books.faults() == []


def test_a_budget_counts_what_a_default_of_another_calendar_that_ended_has_seen(books):
    """Red before: it began with nothing."""
    books.apply(EVERYBODY, at_us=us(2026, 11, 2))
    books.spend(us(2026, 11, 3), 30, user_id="ann", holds=(Hold("user:ann@month", MONTH, 0),))
    books.apply()
    own = BudgetSpec("user:ann", "month", 100, hard=True, timezone="Europe/Berlin")
    books.apply(own)
    berlin = ann("ann", window_at("month", "Europe/Berlin", AT_US // 10**6).start_s)
    assert books.spent() == {berlin: 30}
    assert books.faults() == []
    assert books.grantable(berlin) == 70


def test_what_was_spent_while_a_budget_only_counted_is_no_fault_of_a_lower_limit(books):
    """Red before: a window of a month ago stayed a fault for good."""
    october = us(2026, 10, 10)
    books.apply(replace(TEAM, hard=False, limit_pusd=50), at_us=october)
    start = window_at("month", "UTC", october // 10**6).start_s
    books.spend(october + 1, 90, holds=(Hold(HOME.budget_id, start, 0),))
    books.apply(replace(TEAM, limit_pusd=50))
    assert books.spent() == {BudgetAccount(HOME.budget_id, start): 90}
    assert books.faults() == []
