"""Workers at the desk: nothing overspent, nothing refused while money is there, all returned."""

import asyncio
import random
from contextlib import asynccontextmanager
from functools import partial

import pytest
from sqlalchemy import insert, select, update

from ledger.budgets import broker
from ledger.budgets import broker_protocol as wire
from ledger.budgets.broker import BudgetBroker
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.budgets.client import BrokerUnavailable, BudgetClient
from ledger.budgets.grants import AccountBalance, BudgetAccount
from ledger.budgets.loans import LoanBook
from ledger.journals.records import Hold
from ledger.orm import tables as orm

NOW_US = 1_780_000_000_000_000  # 2026-05-28
DAY = 1_779_926_400
MONTH = 1_777_593_600


class Host:
    """One host's desk and its workers, on real sockets and a real database."""

    def __init__(self, engine, directory, name="h1"):
        self.engine, self.name = engine, name
        self.socket = directory / f"{name}.sock"
        self.desk = BudgetBroker(engine, host=name, socket=self.socket)
        self.clients = []

    async def open(self, workers):
        await self.desk.start()
        self.desk.refresh(self.desk.read_snapshot())
        for number in range(workers):
            await self.connect(f"{self.name}w{number}")

    async def connect(self, name):
        client = BudgetClient(self.socket, worker=name, now_us=lambda: NOW_US)
        await client.connect()
        assert client.connected
        self.clients.append(client)
        return client

    async def close(self):
        for client in self.clients:
            await client.aclose()
        await self.desk.stop()

    def lent(self, budget="team:a@day", window=DAY):
        return self.desk.lent_pusd(BudgetAccount(budget, window))


def set_budget(engine, budget_id, limit, *, hard=True):
    scope, _, period = budget_id.partition("@")
    row = {
        "id": budget_id,
        "scope": scope,
        "period": period,
        "limit_pusd": limit,
        "hard": hard,
        "timezone": "UTC",
        "created_us": 0,
    }
    with engine.begin() as connection:
        if connection.execute(select(orm.BudgetRow).where(orm.BudgetRow.id == budget_id)).first():
            connection.execute(
                update(orm.BudgetRow).where(orm.BudgetRow.id == budget_id).values(limit_pusd=limit)
            )
        else:
            connection.execute(insert(orm.BudgetRow), [row])


async def until(true):
    """Waits for what another task will do."""
    async with asyncio.timeout(30):
        while True:
            answer = true()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def opening(engine, tmp_path):
    @asynccontextmanager
    async def opening(limits, workers=1):
        for budget_id, limit in limits.items():
            set_budget(engine, budget_id, limit)
        host = Host(engine, tmp_path)
        await host.open(workers)
        try:
            yield host
        finally:
            await host.close()

    return opening


def granted(engine, budget_id="team:a@day"):
    with engine.connect() as connection:
        query = select(orm.BudgetWindowRow.granted_pusd)
        return connection.execute(
            query.where(orm.BudgetWindowRow.budget_id == budget_id)
        ).scalar_one()


async def test_without_budgets_nothing_is_held_and_nobody_asked(opening):
    async with opening({}) as host:
        (client,) = host.clients
        assert client.remaining_pusd(["global", "team:a"]) is None
        assert await client.hold("r1.1", ["global", "team:a"], 10**9) == ()
        client.release("r1.1", 5)


async def test_budgets_that_nobody_has_read_are_not_taken_for_none(engine, tmp_path):
    set_budget(engine, "team:a@day", 1000)
    host = Host(engine, tmp_path)
    await host.desk.start()
    client = BudgetClient(host.socket, worker="w", now_us=lambda: NOW_US)
    host.clients.append(client)
    starting = asyncio.create_task(client.connect())
    await until(lambda: client.connected)
    with pytest.raises(BrokerUnavailable):
        await client.hold("r1.1", ["team:a"], 10)
    host.desk.refresh(host.desk.read_snapshot())
    await starting
    assert len(await client.hold("r2.1", ["team:a"], 10)) == 1
    await host.close()


async def test_the_widest_of_equally_tight_budgets_is_named_in_the_window_of_this_moment(opening):
    async with opening({"team:a@day": 1000, "global@day": 1000, "key:k@day": 2000}) as host:
        now_us = NOW_US
        client = BudgetClient(host.socket, worker="w", now_us=lambda: now_us)
        host.clients.append(client)
        await client.connect()
        scopes = ["key:k", "team:a", "global"]
        for day in (0, 1, -1):  # clocks may also be set back
            now_us = NOW_US + day * 86_400 * 10**6
            window_us = [(DAY + n * 86_400) * 10**6 for n in (day, day + 1)]
            assert client.tightest(scopes) == BudgetRefusal("global@day", 1000, 1000, *window_us)


async def test_a_hold_names_every_budget_in_its_window(opening, engine):
    set_budget(engine, "org:o@month", 10**6, hard=False)
    async with opening({"team:a@day": 1000, "global@month": 5000}) as host:
        (client,) = host.clients
        scopes = ["team:a", "org:o", "global"]
        assert client.remaining_pusd(scopes) == 1000
        assert await client.hold("r1.1", scopes, 100) == (
            Hold("global@month", MONTH, 100),
            Hold("org:o@month", MONTH, 0),
            Hold("team:a@day", DAY, 100),
        )


async def test_a_refusal_names_the_budget_and_its_reset(opening):
    async with opening({"team:a@day": 1000, "global@month": 5000}) as host:
        (client,) = host.clients
        await client.hold("r1.1", ["team:a", "global"], 600)
        refusal = await client.hold("r2.1", ["team:a", "global"], 600)
        assert refusal == BudgetRefusal(
            "team:a@day", 1000, 400, DAY * 10**6, (DAY + 86_400) * 10**6, unspent_pusd=1000
        )
        # All or nothing: the wider scope was not touched by the refusal.
        assert host.lent("global@month", MONTH) <= 5000
        assert await client.hold("r3.1", ["global"], 4400) != ()
        client.release("r1.1", 0)
        assert await client.hold("r4.1", ["team:a"], 1000) == (Hold("team:a@day", DAY, 1000),)


async def test_a_refusal_of_a_budget_that_is_gone_by_then_names_this_moment(opening):
    async with opening({"team:a@day": 1000}) as host:
        (client,) = host.clients
        asking = asyncio.create_task(client.hold("r1.1", ["team:a"], 2000))
        await asyncio.sleep(0)
        client._receive(wire.BudgetUpdate((), ()))  # it was retired while its desk was asked
        refused = await asking
        assert (refused.scope, refused.room_pusd) == ("team:a@day", 1000)
        assert refused.since_us == refused.resets_at_us == NOW_US


async def test_a_slice_serves_many_holds_without_asking(opening, engine, monkeypatch):
    async with opening({"team:a@day": 10**15}) as host:
        (client,) = host.clients
        await client.hold("r0.1", ["team:a"], 1000)
        monkeypatch.setattr(client, "_send", None)  # asking anyone would fail
        for number in range(1, 500):
            assert len(await client.hold(f"r{number}.1", ["team:a"], 1000)) == 1
            client.release(f"r{number}.1", 10)
        monkeypatch.undo()
        assert granted(engine) < 10**15


class Storm:
    """Many attempts on one budget; watches every moment's total and each refusal's reason.

    A loan on its way to a worker is taken, though its attempt has not heard of it yet.
    """

    def __init__(self, limit, hosts, rng):
        self.limit, self.rng = limit, rng
        self.clients = [client for host in hosts for client in host.clients]
        self.on_the_way = self.held = self.spent = self.most = 0
        self.admitted = self.refused = self.unjustified = 0
        self.peaks = {}
        for host in hosts:
            host.desk._answer_loan = partial(self.count_loan, host.desk._answer_loan)
        for client in self.clients:
            client._borrow = partial(self.borrow, client._borrow)

    def count_loan(self, answer_loan, queue):
        answer = answer_loan(queue)
        if isinstance(answer, wire.Loan):
            self.on_the_way += queue.borrow.hold_pusd
            self._note()
        return answer

    async def borrow(self, borrow, short, taken, bound_pusd, team):
        refusal = await borrow(short, taken, bound_pusd, team)
        if refusal is None:  # its attempt goes on in this same step
            self.on_the_way -= bound_pusd
        return refusal

    def _note(self):
        total = self.held + self.spent
        self.most = max(self.most, total)
        for attempt in self.peaks:
            self.peaks[attempt] = max(self.peaks[attempt], total + self.on_the_way)

    async def attempt(self, number, *, bound, actual):
        client = self.clients[number % len(self.clients)]
        name = f"r{number}.1"
        await asyncio.sleep(self.rng.random() * 0.02)
        self.peaks[name] = self.held + self.spent + self.on_the_way
        holds = await client.hold(name, ["team:a"], bound)
        peak = self.peaks.pop(name)
        if isinstance(holds, BudgetRefusal):
            self.refused += 1
            self.unjustified += peak + bound <= self.limit
            return
        self.admitted += 1
        self.held += bound
        self._note()
        await asyncio.sleep(self.rng.random() * 0.02)
        # Counted before it is released: nobody may take the rest before we say it is free.
        self.held -= bound
        self.spent += actual
        client.release(name, actual)

    async def run(self, count, *, bound, actual):
        attempts = (self.attempt(n, bound=bound, actual=actual) for n in range(count))
        await asyncio.gather(*attempts)


@pytest.mark.parametrize(("bound", "actual"), [(100, 100), (100, 5), (100, 0), (333, 100)])
async def test_a_storm_on_a_small_budget_is_exact(opening, bound, actual):
    limit = 1000
    async with opening({"team:a@day": limit}, workers=4) as host:
        storm = Storm(limit, [host], random.Random(7))
        await storm.run(120, bound=bound, actual=actual)
        assert storm.most <= limit
        assert storm.unjustified == 0
        assert storm.admitted >= limit // bound
        assert storm.refused + storm.admitted == 120
        # Held returns to nothing: whoever asks next gets all that was not spent.
        rest = limit - storm.spent
        if rest:
            assert isinstance(await host.clients[0].hold("last.1", ["team:a"], rest), tuple)
        assert isinstance(await host.clients[1].hold("over.1", ["team:a"], 1), BudgetRefusal)


@pytest.mark.parametrize("wider", [(), ("team:a@month",), ("org:o@day", "global@day")])
@pytest.mark.parametrize(("workers", "limit"), [(1, 33_333), (2, 33_333), (2, 60_000), (3, 60_000)])
async def test_a_burst_on_nested_budgets_gets_all_that_fits(opening, wider, workers, limit):
    """Idle slices of one budget are called back, also where another one was short before."""
    limits = {"team:a@day": limit} | dict.fromkeys(wider, 10**9)
    async with opening(limits, workers=workers) as host:
        holds = [
            host.clients[n % workers].hold(f"r{n}.1", ["global", "org:o", "team:a"], 636)
            for n in range(60)
        ]
        answers = await asyncio.gather(*holds)
        admitted = [answer for answer in answers if not isinstance(answer, BudgetRefusal)]
        assert len(admitted) == min(60, limit // 636)


async def test_control_without_the_limit_the_same_storm_overspends(opening, monkeypatch):
    def generous(_engine, _host, needs, _together):
        return {need.account: AccountBalance(1000, 0, 0, 10**9, 0, 0) for need in needs}

    monkeypatch.setattr(broker, "grow", generous)
    async with opening({"team:a@day": 1000}, workers=4) as host:
        storm = Storm(1000, [host], random.Random(7))
        await storm.run(120, bound=100, actual=100)
        assert storm.most > 1000


async def test_control_a_desk_that_keeps_room_for_itself_is_found_out(opening, monkeypatch):
    remaining_pusd = LoanBook.remaining_pusd
    monkeypatch.setattr(
        LoanBook, "remaining_pusd", lambda book, account: remaining_pusd(book, account) - 1
    )
    async with opening({"team:a@day": 1000}, workers=4) as host:
        storm = Storm(1000, [host], random.Random(7))
        await storm.run(120, bound=100, actual=0)
        assert storm.unjustified


async def test_control_without_recall_money_is_refused_that_is_there(opening, monkeypatch):
    async def none(*_):
        return frozenset()

    async def idle_slice(host):
        holder, asker = host.clients
        await holder.hold("big.1", ["team:a"], 10)
        holder.release("big.1", 0)  # its slice keeps a quarter of the limit, idle
        return await asker.hold("all.1", ["team:a"], 100_000)

    async with opening({"team:a@day": 100_000}, workers=2) as host:
        assert isinstance(await idle_slice(host), tuple)
        host.clients[1].release("all.1", 0)
    monkeypatch.setattr(BudgetBroker, "_recall", none)
    async with opening({"team:b@day": 1}, workers=2) as host:
        assert isinstance(await idle_slice(host), BudgetRefusal)


async def test_who_asks_after_a_recall_has_one_of_its_own(opening):
    """What came free since then is called back for it."""
    async with opening({"team:a@day": 100_000}, workers=2) as host:
        holder, asker = host.clients
        await holder.hold("big.1", ["team:a"], 60_000)
        assert isinstance(await asker.hold("r1.1", ["team:a"], 60_000), BudgetRefusal)
        holder.release("big.1", 0)  # and lies idle in its slice
        assert isinstance(await asker.hold("r2.1", ["team:a"], 60_000), tuple)


async def test_stopping_ends_loans_under_way_of_workers_that_hung_up(opening):
    async with opening({"team:a@day": 1000}) as host:
        (client,) = host.clients
        async with host.desk._one_at_a_time:
            asking = asyncio.create_task(client.hold("r1.1", ["team:a"], 600))
            await until(lambda: host.desk._borrowing)
            (loan,) = host.desk._borrowing
            asking.cancel()
            await client.aclose()
            await until(lambda: not host.desk._workers)
            await host.desk.stop()
            assert loan.done()


async def test_two_hosts_share_one_limit_exactly(engine, tmp_path):
    set_budget(engine, "team:a@day", 1000)
    hosts = [Host(engine, tmp_path, name) for name in ("h1", "h2")]
    for host in hosts:
        await host.open(2)
    storm = Storm(1000, hosts, random.Random(3))
    await storm.run(60, bound=100, actual=100)
    assert storm.most == 1000
    assert granted(engine) == 1000
    for host in hosts:
        await host.close()


async def test_what_lies_idle_on_one_host_is_left_to_the_other(engine, tmp_path):
    set_budget(engine, "team:a@day", 1000)
    hosts = [Host(engine, tmp_path, name) for name in ("h1", "h2")]
    for host in hosts:
        await host.open(1)
    (idle,), (asker,) = (host.clients for host in hosts)
    await idle.hold("r1.1", ["team:a"], 1)
    idle.release("r1.1", 0)  # a loan ahead lies in its slice
    assert isinstance(await asker.hold("r2.1", ["team:a"], 1000), BudgetRefusal)
    await asker.hold("r3.1", ["team:a"], 700)
    for host in hosts:  # what the writer does a few times a second
        await host.desk.share(host.desk.read_snapshot())
    assert isinstance(await asker.hold("r4.1", ["team:a"], 300), tuple)
    assert granted(engine) == 1000
    for host in hosts:
        await host.close()


async def test_a_desk_that_restarts_knows_what_is_lent(engine, tmp_path):
    set_budget(engine, "team:a@day", 1000)
    host = Host(engine, tmp_path)
    await host.open(2)
    first, second = host.clients
    await first.hold("r1.1", ["team:a"], 600)
    await host.desk.stop()
    again = host.desk = BudgetBroker(engine, host="h1", socket=host.socket)
    again.restore([first.journal, second.journal])
    # While one worker has not spoken, the desk can neither lend the old grant nor refuse.
    assert again.lent_pusd(BudgetAccount("team:a@day", DAY)) == 0
    await again.start()
    for client in host.clients:
        await until(lambda client=client: client.connected)
    await until(lambda: not again._book._undeclared)
    assert isinstance(await second.hold("r2.1", ["team:a"], 401), BudgetRefusal)
    assert isinstance(await second.hold("r3.1", ["team:a"], 400), tuple)
    await host.close()


async def test_until_every_worker_has_spoken_nothing_is_refused_or_lent_twice(engine, tmp_path):
    set_budget(engine, "team:a@day", 1000)
    host = Host(engine, tmp_path)
    await host.open(1)
    await host.clients[0].hold("r1.1", ["team:a"], 600)
    await host.desk.stop()
    await host.clients[0].aclose()
    again = host.desk = BudgetBroker(engine, host="h1", socket=host.socket)
    again.restore([host.clients[0].journal])
    await again.start()
    again.refresh(again.read_snapshot())
    other = await host.connect("other")
    assert isinstance(await other.hold("r2.1", ["team:a"], 300), tuple)  # the database adds it
    with pytest.raises(BrokerUnavailable):
        await other.hold("r3.1", ["team:a"], 300)
    again.apply_spent({(host.clients[0].journal, "team:a@day", DAY): 600})
    again.close_journal(host.clients[0].journal)
    assert isinstance(await other.hold("r4.1", ["team:a"], 101), BudgetRefusal)
    assert isinstance(await other.hold("r5.1", ["team:a"], 100), tuple)
    await host.close()


async def test_a_buried_worker_leaves_what_it_did_not_spend(opening):
    async with opening({"team:a@day": 1000}, workers=2) as host:
        dead, other = host.clients
        await dead.hold("r1.1", ["team:a"], 600)
        await dead.hold("r2.1", ["team:a"], 300)
        dead._return_loans = lambda *_: None  # it is killed: nothing is given back
        await dead.aclose()
        assert isinstance(await other.hold("r3.1", ["team:a"], 200), BudgetRefusal)
        host.desk.apply_spent({("h1w0", "team:a@day", DAY): 600})
        host.desk.close_journal("h1w0")
        assert isinstance(await other.hold("r4.1", ["team:a"], 401), BudgetRefusal)
        assert isinstance(await other.hold("r5.1", ["team:a"], 400), tuple)


async def test_with_the_desk_gone_slices_go_on_and_the_rest_is_told(opening):
    async with opening({"team:a@day": 10**12}) as host:
        (client,) = host.clients
        await client.hold("r1.1", ["team:a"], 1000)
        await host.desk.stop()
        await asyncio.sleep(0.02)
        assert len(await client.hold("r2.1", ["team:a"], 1000)) == 1
        with pytest.raises(BrokerUnavailable):
            await client.hold("r3.1", ["team:a"], 10**12)


async def test_who_waits_is_told_at_once_that_the_desk_went_away_and_asks_the_next(tmp_path):
    terms = wire.BudgetTerms("team:a@day", "team:a", "day", "UTC", True, "1000")
    heard, rounds = [], []

    async def serve(reader, writer):
        rounds.append(writer)
        writer.write(wire.frame(wire.BudgetUpdate((), (terms,))))
        async for payload in wire.payloads(reader):
            request = wire.REQUESTS.decode(payload)
            heard.append(request)
            if isinstance(request, wire.LoanRequest):
                if len(rounds) == 1:
                    break  # without an answer
                loan = wire.Loan(request.number, request.asks)
                writer.write(wire.frame(loan))
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "desk")
    client = BudgetClient(tmp_path / "desk", worker="w", now_us=lambda: NOW_US)
    await client.connect()
    with pytest.raises(BrokerUnavailable, match="went away"):
        await client.hold("r1.1", ["team:a"], 600)
    await until(lambda: len(rounds) == 2 and client.connected)
    (held,) = await client.hold("r2.1", ["team:a"], 600)
    assert held.amount_pusd == 600
    hellos = [request for request in heard if isinstance(request, wire.ClientHello)]
    assert [hello.journal for hello in hellos] == ["w", "w"]
    assert [amount.pusd for hello in hellos for amount in hello.granted] in ([], [0])
    await client.aclose()
    server.close()
    await server.wait_closed()
    assert not client.connected


async def test_a_cancelled_hold_holds_nothing(opening):
    async with opening({"team:a@day": 1000}, workers=2) as host:
        client, other = host.clients
        for turns in range(4):
            task = asyncio.create_task(client.hold(f"c{turns}.1", ["team:a"], 1000))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        async def admitted():
            return isinstance(await other.hold("r.1", ["team:a"], 1000), tuple)

        await until(admitted)


async def test_a_settle_dearer_than_its_hold_overdraws_visibly(opening):
    async with opening({"team:a@day": 1000}) as host:
        (client,) = host.clients
        await client.hold("r1.1", ["team:a"], 100)
        client.release("r1.1", 300)
        assert isinstance(await client.hold("r2.1", ["team:a"], 701), BudgetRefusal)
        assert isinstance(await client.hold("r3.1", ["team:a"], 700), tuple)


async def test_a_raised_limit_reaches_workers(opening, engine):
    async with opening({"team:a@day": 100}) as host:
        (client,) = host.clients
        assert isinstance(await client.hold("r1.1", ["team:a"], 200), BudgetRefusal)
        set_budget(engine, "team:a@day", 1000)
        host.desk.refresh(host.desk.read_snapshot())
        assert isinstance(await client.hold("r2.1", ["team:a"], 200), tuple)
        await until(lambda: client.remaining_pusd(["team:a"]) == 1000)


async def test_a_clock_that_jumps_a_day_and_back_loses_no_room_and_lends_none_twice(opening):
    """Red before: its slice was forgotten, so its room was nobody's, or what it spent was free."""
    async with opening({"team:a@day": 1000}) as host:
        (client,) = host.clients
        now_us = [NOW_US]
        client._now_us = lambda: now_us[0]
        assert await client.hold("spent", ["team:a"], 100)
        client.release("spent", 100)
        now_us[0] += 86_400_000_000
        assert await client.hold("tomorrow", ["team:a"], 1000)
        now_us[0] -= 86_400_000_000
        held = await client.hold("rest", ["team:a"], 900)
        assert not isinstance(held, BudgetRefusal)
        client.release("rest", 0)
        await host.desk.stop()  # another desk asks the worker what it was lent
        await until(lambda: not client.connected)
        host.desk = BudgetBroker(host.engine, host=host.name, socket=host.socket)
        host.desk.restore([client.journal])
        await host.desk.start()
        host.desk.refresh(host.desk.read_snapshot())
        await until(lambda: client.connected)
        assert isinstance(await client.hold("above", ["team:a"], 901), BudgetRefusal)
        assert isinstance(await client.hold("all", ["team:a"], 900), tuple)


async def test_a_default_budget_is_held_in_the_window_of_this_moment(opening) -> None:
    """Found by a mutant: accounts of a default were kept from the window before."""
    async with opening({"team:*@day": 1000}) as host:
        (client,) = host.clients
        now_us = [NOW_US]
        client._now_us = lambda: now_us[0]
        today = await client.hold("today", ["team:a"], 900)
        now_us[0] += 86_400_000_000
        tomorrow = await client.hold("tomorrow", ["team:a"], 900)
        assert today == (Hold("team:a@day", DAY, 900),)
        assert tomorrow == (Hold("team:a@day", DAY + 86_400, 900),)
