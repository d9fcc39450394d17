"""A default binds each name by itself, from its first use on; a name's own budget overrides it."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from sqlalchemy import insert, select

from ledger.budgets import broker
from ledger.budgets.binding import (
    BoundBudgets,
    binding,
    default_of,
    is_bound_by,
    is_default,
    scope_of,
    wildcard_of,
)
from ledger.budgets.broker import BudgetBroker
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.budgets.client import BudgetClient
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, BudgetLine, GrantNeed, grow, standings
from ledger.budgets.windows import window_at
from ledger.declared import declare
from ledger.orm import tables as orm
from ledger.verify.budgets import BUDGET_CHECKS

AT_US = 1_795_435_200_000_000
HOLD, LIMIT = 100, 1_000
EACH = BudgetSpec("user:*", "month", LIMIT, hard=True, timezone="UTC")


def line(scope: str, period: str = "month") -> BudgetLine:
    return BudgetLine(f"{scope}@{period}", scope, period, "UTC", True, 1)


def test_names_may_hold_anything() -> None:
    assert wildcard_of("user:ann@acme.com:x") == "user:*"
    assert default_of("user:ann@acme.com@day") == "user:*@day"
    assert scope_of("user:ann@acme.com@day") == "user:ann@acme.com"
    assert [wildcard_of(name) for name in ("global", "model:a", "user:*", "tag:app")] == [None] * 4
    assert wildcard_of("tag:run=a=b:c") == "tag:run=*"
    assert wildcard_of("tag:run=*") is None
    assert default_of("tag:run=a@b@day") == "tag:run=*@day"
    assert is_default("tag:run=*")
    assert not is_default("tag:*")
    assert is_default("team:*")
    assert not is_default("model:*")


def test_ones_own_budget_comes_before_the_default_of_its_period() -> None:
    every = {
        "user:*": [line("user:*"), line("user:*", "day")],
        "user:ann": [line("user:ann")],
        "team:a": [line("team:a")],
    }
    assert [
        (name, item.id) for name, item in binding(every, ("team:a", "user:ann", "user:bob"))
    ] == [
        ("team:a@month", "team:a@month"),
        ("user:ann@month", "user:ann@month"),
        ("user:ann@day", "user:*@day"),
        ("user:bob@month", "user:*@month"),
        ("user:bob@day", "user:*@day"),
    ]


def say(engine, *budgets: BudgetSpec, at_us: int = AT_US) -> None:
    declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=at_us)


def test_what_is_retired_binds_nobody_while_something_else_does(engine) -> None:
    own = BudgetSpec("user:ann", "month", 5, hard=True, timezone="UTC")

    def limits() -> list:
        with engine.connect() as connection:
            found = BoundBudgets(connection)
            return [
                item and item.limit_pusd
                for item in map(found.of, ("user:ann@month", "user:b@month"))
            ]

    say(engine, own)
    assert limits() == [5, None]
    say(engine, own, EACH)
    assert limits() == [5, LIMIT]
    say(engine, EACH)
    assert limits() == [LIMIT, LIMIT]
    say(engine)
    assert limits() == [5, LIMIT], "what was in force last"


class House:
    """Two hosts with two workers each, on one database."""

    def __init__(self, engine, folder) -> None:
        self.engine, self.folder, self.desks, self.workers = engine, folder, [], []
        self.now_us = AT_US
        self.number = 0

    async def open(self, stack: AsyncExitStack) -> None:
        for host in ("h", "g"):
            socket = self.folder / f"{host}.sock"
            desk = BudgetBroker(self.engine, host=host, socket=socket)
            desk.restore(())
            desk.refresh(desk.read_snapshot(self.now_us))
            await desk.start()
            stack.push_async_callback(desk.stop)
            self.desks.append(desk)
            for number in range(2):
                name = f"{host}{number}"
                worker = BudgetClient(socket, worker=name, now_us=lambda: self.now_us)
                await worker.connect()
                stack.push_async_callback(worker.aclose)
                self.workers.append(worker)

    async def burst(self, scope: str = "user:ann", each: int = 8) -> tuple[int, int]:
        """All at once at every worker: how many were admitted and refused."""
        begin, holds = asyncio.Event(), []

        async def one(worker: BudgetClient, name: str) -> bool:
            await begin.wait()
            found = await worker.hold(name, (scope, "team:a"), HOLD)
            return not isinstance(found, BudgetRefusal)

        for worker in self.workers:
            for _ in range(each):
                self.number += 1
                holds.append(asyncio.create_task(one(worker, f"a{self.number}")))
        await asyncio.sleep(0)
        begin.set()
        admitted = await asyncio.gather(*holds)
        return sum(admitted), len(admitted) - sum(admitted)

    async def learn(self) -> None:
        """What was declared meanwhile has reached every worker."""
        before = [worker.edition() for worker in self.workers]
        for desk in self.desks:
            desk.refresh(desk.read_snapshot(self.now_us))
        async with asyncio.timeout(30):
            for worker, seen in zip(self.workers, before, strict=True):
                while worker.edition() == seen:  # noqa: ASYNC110  (a worker says nothing when it learns)
                    await asyncio.sleep(0.01)

    def granted(self) -> dict[str, int]:
        with self.engine.connect() as connection:
            columns = (orm.BudgetWindowRow.budget_id, orm.BudgetWindowRow.granted_pusd)
            return {row[0]: row[1] for row in connection.execute(select(*columns))}

    def faults(self) -> list:
        with self.engine.connect() as connection:
            return [item for check in BUDGET_CHECKS for item in check(connection)]


@pytest.fixture
async def house(engine, tmp_path, monkeypatch):
    """Before it refuses, a desk waits for what the other leaves idle: here all of it is held."""
    monkeypatch.setattr(broker, "LEFT_AFTER_S", 0.05)
    say(engine, EACH)
    made = House(engine, tmp_path)
    async with AsyncExitStack() as stack:
        await made.open(stack)
        yield made


async def test_the_first_requests_of_somebody_unknown_hold_the_default_exactly(house) -> None:
    assert await house.burst() == (LIMIT // HOLD, 4 * 8 - LIMIT // HOLD)
    assert await house.burst("user:bob@acme.com") == (LIMIT // HOLD, 4 * 8 - LIMIT // HOLD)
    assert house.granted() == {"user:ann@month": LIMIT, "user:bob@acme.com@month": LIMIT}
    assert house.faults() == []
    refused = await house.workers[0].hold("late", ("user:ann",), HOLD)
    month = window_at("month", "UTC", AT_US // 10**6)
    assert refused == BudgetRefusal(
        "user:ann@month", LIMIT, 0, month.start_s * 10**6, month.end_s * 10**6, unspent_pusd=LIMIT
    )
    assert {standing.limit_pusd for standing in standings(house.engine, "h").values()} == {LIMIT}


async def test_without_the_default_all_of_them_pass(house, monkeypatch) -> None:
    """The control: the storm is one."""
    monkeypatch.setattr("ledger.budgets.client.binding", lambda known, scopes: ())
    assert await house.burst() == (32, 0)


async def test_a_default_that_is_raised_or_lowered_holds_at_once(house) -> None:
    assert (await house.burst())[0] == 10
    say(house.engine, BudgetSpec("user:*", "month", 1_500, hard=True, timezone="UTC"))
    await house.learn()
    assert (await house.burst())[0] == 5
    say(house.engine, BudgetSpec("user:*", "month", 700, hard=True, timezone="UTC"))
    await house.learn()
    assert (await house.burst())[0] == 0
    assert (await house.burst("user:new"))[0] == 7
    assert house.faults() == []


async def test_ones_own_budget_overrides_the_default_until_it_goes(house) -> None:
    own = BudgetSpec("user:ann", "month", 300, hard=True, timezone="UTC")
    say(house.engine, EACH, own)
    await house.learn()
    assert (await house.burst())[0] == 3
    assert (await house.burst("user:bob"))[0] == 10
    say(house.engine, EACH)
    await house.learn()
    assert (await house.burst())[0] == 7, "what was held counts on"
    assert house.faults() == []


async def test_the_next_window_begins_anew_for_everybody(house) -> None:
    assert (await house.burst())[0] == 10
    house.now_us = window_at("month", "UTC", AT_US // 10**6).end_s * 10**6
    assert (await house.burst())[0] == 10
    assert len(standings(house.engine, "h")) + len(standings(house.engine, "g")) == 4


RUNS = BudgetSpec("tag:run=*", "month", LIMIT, hard=True, timezone="UTC")


async def test_each_run_has_a_budget_that_two_hosts_hold_exactly(house) -> None:
    say(house.engine, RUNS)
    await house.learn()
    for run in ("tag:run=a", "tag:run=b@c=d"):
        assert await house.burst(run) == (LIMIT // HOLD, 4 * 8 - LIMIT // HOLD)
    assert house.granted() == {"tag:run=a@month": LIMIT, "tag:run=b@c=d@month": LIMIT}
    assert house.faults() == []


async def hold_value(house, number: int, *scopes: str, pusd: int = HOLD) -> bool:
    worker = house.workers[number % len(house.workers)]
    return not isinstance(await worker.hold(f"v{number}", scopes, pusd), BudgetRefusal)


async def test_who_makes_up_runs_without_end_uses_up_their_own_teams_share(
    house, monkeypatch
) -> None:
    """Red before: the values were everybody's, and one key took them all."""
    monkeypatch.setattr("ledger.budgets.tag_values.VALUES_MOST", 4)
    say(house.engine, RUNS, BudgetSpec("tag:run=mine", "month", LIMIT, hard=True, timezone="UTC"))
    await house.learn()
    admitted = [await hold_value(house, at, "team:loud", f"tag:run={at}") for at in range(12)]
    assert admitted == [True] * 4 + [False] * 8
    assert len(house.granted()) == 4 + 1, "of the own budget, which is no value"
    assert sum(len(desk._book.standings) for desk in house.desks) <= 2 * 4
    assert sum(len(desk._book._pots) for desk in house.desks) <= 2 * 4
    assert await hold_value(house, 20, "team:calm", "tag:run=nightly")
    assert await hold_value(house, 21, "team:loud", "tag:run=0"), "what is made goes on"
    assert await hold_value(house, 22, "team:loud", "tag:run=mine")
    assert house.faults() == []


async def test_nothing_is_made_for_a_hold_that_is_refused(house, monkeypatch) -> None:
    """Red before: a window was made for each run of a team without room, and counted."""
    monkeypatch.setattr("ledger.budgets.tag_values.VALUES_MOST", 2)
    legs = replace(RUNS, scope="tag:leg=*")
    say(house.engine, RUNS, legs, BudgetSpec("team:a", "month", LIMIT, hard=True, timezone="UTC"))
    await house.learn()
    assert not await hold_value(house, 0, "tag:run=dear", pusd=LIMIT + 1)
    assert await hold_value(house, 1, "team:a", pusd=LIMIT)
    refused = await house.workers[1].hold("r", ("team:a", "tag:run=b"), HOLD)
    assert isinstance(refused, BudgetRefusal)
    assert refused.scope == "team:a@month", "who has no room is told, not what was not made"
    for at in (2, 3):
        assert await hold_value(house, at, "team:b", f"tag:run={at}")
    assert not await hold_value(house, 4, "team:b", "tag:leg=x", "tag:run=4")
    assert set(house.granted()) == {"team:a@month", "tag:run=2@month", "tag:run=3@month"}
    assert await hold_value(house, 5, "team:b", "tag:leg=x", "tag:run=3")
    assert house.faults() == []


@pytest.mark.each_database
def test_an_account_is_bound_by_the_default_of_its_very_name(engine) -> None:
    names = ("tag:run_1=a@day", "tag:run-1=a@day", "tag:RUN_1=a@day", "tag:run_1=b@month",
             "tag:run_1=@x@day", "user:run_1=a@day")  # fmt: skip
    rows = [{"budget_id": name, "window": 0, "spent_pusd": 0, "granted_pusd": 0,
             "claimed_pusd": 0} for name in names]  # fmt: skip
    column = orm.BudgetWindowRow.budget_id
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetWindowRow), rows)
        found = connection.execute(select(column).where(is_bound_by(column, "tag:run_1=*@day")))
        assert set(found.scalars()) == {names[0], names[4]}


def test_values_of_a_tag_of_almost_the_same_name_leave_its_own_room(house, monkeypatch) -> None:
    """To LIKE `_` is any character, and to SQLite's a capital letter is a small one."""
    monkeypatch.setattr("ledger.budgets.tag_values.VALUES_MOST", 2)
    tags = ("run_id", "run-id", "RUN_ID")
    say(house.engine, *(replace(RUNS, scope=f"tag:{tag}=*") for tag in tags))
    window = 0
    for tag in reversed(tags):
        for value in "ab":
            account = BudgetAccount(f"tag:{tag}={value}@month", window)
            assert grow(house.engine, "h", [GrantNeed(account, HOLD, HOLD)])[account].mine_pusd
        beyond = BudgetAccount(f"tag:{tag}=c@month", window)
        assert not grow(house.engine, "h", [GrantNeed(beyond, HOLD, HOLD)])[beyond].mine_pusd
