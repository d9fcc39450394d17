"""Budgets are declared while attempts are opened, settled and lost: each counts once, at its cost.

A declaration counts what ended before it keeps others away. Here others write between the two: on
PostgreSQL by connections of their own, on SQLite, which has one writer, by the declaration's.
"""

import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from sqlalchemy import event, func, select, text
from sqlalchemy.exc import DBAPIError

import ledger.declared as declared
from ledger.budgets import backfill
from ledger.budgets.declaring import await_turn, last_attempt, serialize_declarations
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow
from ledger.budgets.windows import window_at
from ledger.database import make_engine
from ledger.declared import declare
from ledger.orm.budgets import BudgetWindowRow, HoldRow
from ledger.verify.budgets import grants_are_spent, grants_are_within_limits, totals_equal_sums
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
AT_US = int(AT.timestamp()) * 10**6
SCOPES = ("team:search", "user:*", "user:ann", "tag:run=*", "tag:run=r1", "key:k1", "global")
CHECKS = (grants_are_within_limits, grants_are_spent, totals_equal_sums)


class SameConnection:
    """An engine whose transactions are parts of one that goes on."""

    def __init__(self, connection):
        self.dialect, self._connection = connection.dialect, connection

    @contextmanager
    def begin(self):
        with self._connection.begin_nested():
            yield self._connection


@dataclass
class Books:
    """Attempts and what is known of each: `costs` by id, of ended ones at their cost."""

    dice: random.Random
    opened: object
    settled: object
    attempts: dict = field(default_factory=dict)
    costs: dict = field(default_factory=dict)
    open: dict = field(default_factory=dict)  # by id: its journal
    lost: set = field(default_factory=set)

    def write(self, engine, steps):
        """Open attempts, settle some late or at once, and lose the open ones of a journal."""
        repository = LedgerRepository(engine, host="h")
        for _ in range(steps):
            step = self.dice.choice(("open", "open", "settle", "settle", "lose"))
            if step == "open":
                self._open(repository)
            elif step == "settle" and (self.open or self.lost):
                self._settle(repository, self.dice.choice(sorted({*self.open, *self.lost})))
            elif step == "lose" and self.open:
                self._lose(repository)

    def _open(self, repository):
        dice, number = self.dice, len(self.attempts)
        opened_us = AT_US - int(dice.choice((1, 14 * 3600, 19.6 * 86400, 25 * 86400)) * 10**6)
        attempt = self.opened(
            number, opened_us=opened_us + number, holds=(), bound_pusd=dice.randrange(50, 99),
            user_id=dice.choice(("ann", "bob", None)), key_id=dice.choice(("k1", "k2")),
            team_id=dice.choice(("search", "ads")), tags=(("run", f"r{dice.randrange(3)}"),),
        )  # fmt: skip
        journal = dice.choice(("j1", "j2"))
        self.attempts[attempt.attempt_id] = attempt
        self.open[attempt.attempt_id] = journal
        self.costs[attempt.attempt_id] = 0
        repository.apply([JournalItem(journal, 1, number, b"", attempt)], (), at_us=AT_US)
        if dice.random() < 0.6:
            self._settle(repository, attempt.attempt_id)

    def _settle(self, repository, name):
        attempt = self.attempts[name]
        cost = self.costs[name] = self.dice.randrange(attempt.bound_pusd + 1)
        number = int(name.removeprefix("r").partition(".")[0])
        ended = self.settled(number, settled_us=AT_US, cost_pusd=cost, compared=())
        journal = self.open.pop(name, "j1")
        self.lost.discard(name)
        repository.apply([JournalItem(journal, 2, number, b"", ended)], (), at_us=AT_US)

    def _lose(self, repository):
        journal = self.dice.choice(sorted(self.open.values()))
        repository.settle_lost(journal, at_us=AT_US)
        for name in [name for name, of in self.open.items() if of == journal]:
            del self.open[name]
            self.lost.add(name)
            self.costs[name] = self.attempts[name].bound_pusd

    def expected(self, specs):
        """Return what each account of budgets in force has spent, and its number of attempts."""
        found = {}
        own = {spec.id for spec in specs}
        for spec in specs:
            window = window_at(spec.period, spec.timezone, AT_US // 10**6)
            for name, attempt in self.attempts.items():
                account = _account(spec, attempt)
                taken = account in own and account != spec.id
                inside = window.start_s <= attempt.opened_us // 10**6 < window.end_s
                if account is not None and not taken and inside:
                    key = account, window.start_s
                    pusd, number = found.get(key, (0, 0))
                    found[key] = pusd + self.costs[name], number + 1
        return found


def _account(spec, attempt):
    kind, _, name = spec.scope.partition(":")
    run = dict(attempt.tags)["run"]
    values = {"team": attempt.team_id, "user": attempt.user_id, "key": attempt.key_id,
              "tag": f"run={run}", "global": ""}  # fmt: skip
    value = values[kind]
    if value is None or (name not in (value, "*", "run=*")):
        return None
    return f"{kind}:{value}@{spec.period}" if value else spec.id


def play(engine, opened, settled, monkeypatch, seed):
    """Return what the books say otherwise than what happened, after each of some declarations."""
    dice, faults = random.Random(seed), []
    books = Books(dice, opened, settled)
    books.write(engine, 12)

    def serialize(connection, *, shared=False):
        is_shared_file = engine.dialect.name == "sqlite"
        books.write(SameConnection(connection) if is_shared_file else engine, dice.randrange(12))
        serialize_declarations(connection, shared=shared)

    monkeypatch.setattr(declared, "serialize_declarations", serialize)
    for _ in range(3):
        specs = [
            BudgetSpec(scope, dice.choice(("day", "month")), 10**9, hard=dice.random() < 0.7,
                       timezone=dice.choice(("UTC", "UTC", "Europe/Berlin")))
            for scope in dice.sample(SCOPES, dice.randrange(1, 5))
        ]  # fmt: skip
        declare(engine, contracts=(), budgets=specs, config=("c", "c"), at_us=AT_US)
        books.write(engine, 3)
        window, hold = BudgetWindowRow, HoldRow
        with engine.connect() as connection:
            faults += [fault for check in CHECKS for fault in check(connection)]
            rows = connection.execute(select(window.budget_id, window.window, window.spent_pusd))
            spent = {(row[0], row[1]): int(row[2]) for row in rows}
            query = select(hold.budget_id, hold.window, func.count())
            rows = connection.execute(query.group_by(hold.budget_id, hold.window))
            held = {(row[0], row[1]): row[2] for row in rows}
        for key, wanted in books.expected(specs).items():
            found = spent.get(key, 0), held.get(key, 0)
            if found != wanted:
                faults.append((seed, key, found, wanted))
    return faults


@pytest.mark.each_database
@pytest.mark.parametrize("seed", range(6))
def test_each_attempt_counts_once_whatever_is_written_meanwhile(
    engine, opened, settled, monkeypatch, seed
) -> None:
    assert play(engine, opened, settled, monkeypatch, seed) == []


@pytest.mark.each_database
@pytest.mark.parametrize("fault", ["a number drawn late", "nothing may change"])
def test_a_count_that_takes_what_goes_on_for_ended_is_told(
    engine, opened, settled, monkeypatch, fault
) -> None:
    count = backfill._count_part

    def forgetful(*given):
        return count(*given)._replace(changing=())

    if fault == "nothing may change":
        monkeypatch.setattr(backfill, "_count_part", forgetful)
    else:
        monkeypatch.setattr(backfill, "last_attempt", lambda of: last_attempt(of) + 3)
    assert play(engine, opened, settled, monkeypatch, 1) != []


def test_money_moves_while_a_declaration_counts_and_no_other_declares(lent_database) -> None:
    """Red before: all holds waited until a declaration had counted what its windows have seen."""
    engine = make_engine(lent_database.lend())
    account = BudgetAccount("org:acme@month", 0)
    try:
        with engine.begin() as connection:
            await_turn(connection)
            assert last_attempt(connection) == 0
            grow(engine, "h", [GrantNeed(account, 5, 5)])  # does not wait for its lock
            with engine.begin() as other:
                other.execute(text("SET LOCAL lock_timeout = 50"))
                with pytest.raises(DBAPIError, match="lock timeout"):
                    await_turn(other)
    finally:
        engine.dispose()
        lent_database.take_back()


@pytest.mark.parametrize("scope", SCOPES)
def test_what_adds_holds_reads_none(lent_database, opened, settled, scope) -> None:
    """Red before: joined to holds that it took for none, it read what it added again and again."""
    engine = make_engine(lent_database.lend())
    spec = BudgetSpec(scope, "day", 10**9, hard=True, timezone="UTC")
    sweep = backfill.BudgetSweep(spec.as_line(), window_at("day", "UTC", AT_US // 10**6))
    said = []

    def listen(_connection, _cursor, statement, parameters, *_):
        if statement.startswith("INSERT INTO holds"):
            said.append((statement, parameters))

    try:
        Books(random.Random(1), opened, settled).write(engine, 20)
        with engine.begin() as connection:
            event.listen(connection, "before_cursor_execute", listen)
            backfill.backfill(connection, sweep, backfill.count_ended(connection, [sweep]))
            event.remove(connection, "before_cursor_execute", listen)
            plans = [
                [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]
                for statement, parameters in said
            ]
        assert len(plans) >= 3, "ended ones, those since, those under way"
        for first, *lines in plans:
            assert first.startswith("Insert on holds")
            assert not [line for line in lines if "holds" in line and "Conflict" not in line]
    finally:
        engine.dispose()
        lent_database.take_back()
