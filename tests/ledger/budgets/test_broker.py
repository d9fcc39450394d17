"""The desk, spoken to over its socket word by word."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from sqlalchemy import insert, update

from ledger.budgets import broker
from ledger.budgets import broker_protocol as wire
from ledger.budgets.broker import BudgetBroker
from ledger.budgets.entered import BudgetSpec
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow, shrink, standings
from ledger.declared import declare
from ledger.journals.records import Hold
from ledger.orm import tables as orm
from ledger.unixsocket import short_path
from ledger.writing.repository import LedgerRepository

KEY = ("team:a@day", 1_779_926_400)
ACCOUNT = BudgetAccount(*KEY)


class Line:
    """A worker that says what the test says, and while it listens for else has nothing idle."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.payloads = wire.payloads(reader)

    def say(self, message):
        self.writer.write(wire.frame(message))

    async def hear(self, kind):
        async with asyncio.timeout(30):
            while True:
                answer = wire.ANSWERS.decode(await anext(self.payloads))
                if isinstance(answer, kind):
                    return answer
                if isinstance(answer, wire.LoanRecall):
                    self.say(wire.LoanReturn((), answer.number))

    async def borrow(self, pusd, number=1):
        self.say(wire.LoanRequest(number, (wire.amount(KEY, pusd),), pusd))
        return await self.hear((wire.Loan, wire.LoanRefusal))

    def hang_up(self):
        self.writer.close()


@pytest.fixture
def opening(engine, tmp_path):
    row = {"id": KEY[0], "scope": "team:a", "period": "day", "limit_pusd": 1000, "hard": True,
           "created_us": 0}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.BudgetRow), [row])

    @asynccontextmanager
    async def opening(*, journals=()):
        desk = BudgetBroker(engine, host="h", socket=tmp_path / "desk.sock")
        desk.restore(journals)
        desk.refresh(desk.read_snapshot())
        await desk.start()
        lines = []

        async def call(journal, granted=()):
            with short_path(tmp_path / "desk.sock") as path:
                line = Line(*await asyncio.open_unix_connection(path))
            lines.append(line)
            line.say(wire.ClientHello(journal, journal, granted))
            await line.hear(wire.BudgetUpdate)
            return line

        try:
            yield desk, call
        finally:
            for line in lines:
                line.hang_up()
            await desk.stop()

    return opening


@pytest.mark.parametrize("stands_still", [True, False])
async def test_the_desk_ends_although_a_worker_reads_nothing(opening, stands_still):
    """One that was stopped, or hangs: what it was told last lies in its socket and beyond."""
    async with opening() as (desk, call):
        line = await call("j1")
        if stands_still:
            line.reader._transport.pause_reading()
        (worker,) = desk._workers
        message = wire.LoanRecall(1, (KEY,) * 200_000)
        desk._send(worker, message)
        assert worker.writer.transport.get_write_buffer_size() > 0
        rest = asyncio.create_task(line.reader.read())
        async with asyncio.timeout(10):
            await desk.stop()
        assert not desk._serving
        line.reader._transport.resume_reading()
        told = len(await rest), len(wire.frame(message))
        assert told[0] < told[1] if stands_still else told[0] == told[1]


async def test_small_scopes_are_lent_one_hold_at_a_time(opening):
    async with opening() as (desk, call):
        line = await call("j1")
        lent = await line.borrow(300)
        assert [loan.pusd for loan in lent.loans] == [300]
        assert lent.small == (KEY,)
        assert desk.lent_pusd(ACCOUNT) == 300


async def test_large_scopes_are_lent_ahead(opening):
    async with opening() as (desk, call):
        line = await call("j1")
        lent = await line.borrow(1)
        assert lent.loans[0].pusd > 1
        assert lent.small == ()
        assert desk.lent_pusd(ACCOUNT) == lent.loans[0].pusd


async def test_a_late_answer_to_a_recall_is_waited_for_and_nobody_else_waits(opening, monkeypatch):
    """A worker whose loop stood still for a moment holds money that is there for who asks."""
    monkeypatch.setattr(broker, "LEFT_AFTER_S", 0.3)
    async with opening() as (desk, call):
        late, asker, other = await call("j1"), await call("j2"), await call("j3")
        await late.borrow(800)
        asking = asyncio.create_task(asker.borrow(300))
        recall = await late.hear(wire.LoanRecall)
        assert recall.accounts == (KEY,)
        assert isinstance(await other.borrow(200), wire.Loan)  # asked again later, it holds up none
        assert not asking.done()
        late.say(wire.LoanReturn((wire.amount(KEY, 800),), recall.number))
        assert isinstance(await asking, wire.Loan)
        assert desk.lent_pusd(ACCOUNT) <= 1000


async def test_of_what_a_silent_worker_may_have_left_the_room_is_unknown(opening, monkeypatch):
    monkeypatch.setattr(broker, "LEFT_AFTER_S", 0.01)
    async with opening() as (desk, call):
        silent, asker = await call("j1"), await call("j2")
        await silent.borrow(800)
        unknown = await asker.borrow(300, 2)
        assert (unknown.limit_pusd, unknown.room_pusd, unknown.away) == ("1000", "200", True)
        # Whatever it left, this never fits; and what the books say it spent is left to nobody.
        assert not (await asker.borrow(1001, 3)).away
        desk.apply_spent({("j1", *KEY): 701})
        assert not (await asker.borrow(300, 4)).away
        desk.apply_spent({("j1", *KEY): -1})
        assert (await asker.borrow(300, 5)).away


async def test_a_recall_that_is_answered_saves_the_request(opening, monkeypatch):
    monkeypatch.setattr(broker, "RECALL_S", 5.0)
    async with opening() as (_, call):
        holder, asker = await call("j1"), await call("j2")
        await holder.borrow(800)
        asking = asyncio.create_task(asker.borrow(300))
        recall = await holder.hear(wire.LoanRecall)
        holder.say(wire.LoanReturn((wire.amount(KEY, 500),), recall.number))
        # The asker is asked too: other requests of its own may have left money idle.
        asker.say(wire.LoanReturn((), recall.number))
        assert isinstance(await asking, wire.Loan)


async def test_who_hangs_up_during_a_recall_is_not_waited_for(opening, monkeypatch):
    monkeypatch.setattr(broker, "RECALL_S", 60.0)
    async with opening() as (_, call):
        holder, asker = await call("j1"), await call("j2")
        await holder.borrow(800)
        asking = asyncio.create_task(asker.borrow(300))
        recall = await holder.hear(wire.LoanRecall)
        holder.hang_up()
        asker.say(wire.LoanReturn((), recall.number))
        assert isinstance(await asking, wire.LoanRefusal)  # what it borrowed is still lent


async def ask_at_once(line, *amounts):
    """Loans by the place in `amounts`; None where it was refused."""
    for number, pusd in enumerate(amounts):
        line.say(wire.LoanRequest(number, (wire.amount(KEY, pusd),), pusd))
    answers = [await line.hear((wire.Loan, wire.LoanRefusal)) for _ in amounts]
    assert not any(answer.away for answer in answers if isinstance(answer, wire.LoanRefusal))
    lent = {
        answer.number: answer.loans[0].pusd for answer in answers if isinstance(answer, wire.Loan)
    }
    return [lent.get(number) for number in range(len(amounts))]


async def test_who_comes_while_the_desk_works_is_answered_in_its_next_round(opening, monkeypatch):
    """One by one, a burst of calls on spent budgets waited for more than `DeskClient` does."""
    rounds = []

    def counted(engine, host, needs, together):
        rounds.append(len(list(needs)))
        return grow(engine, host, needs, together)

    grow = broker.grow
    monkeypatch.setattr(broker, "grow", counted)
    async with opening() as (_, call):
        answers = await ask_at_once(await call("j1"), *[300] * 60)
    assert answers == [300] * 3 + [None] * 57
    assert len(rounds) <= 8  # by one by one, more than sixty
    assert max(rounds) <= 4  # of what does not fit, the least


@pytest.mark.parametrize(
    ("asked", "lent"),
    [
        ((700, 600, 200, 50, 300), (700, None, 200, 50, None)),
        ((300, 700, 1), (300, 700, None)),
        ((2000, 1000), (None, 1000)),
        ((600, 600, 400, 400), (600, None, 400, None)),
    ],
)
async def test_a_round_lends_in_the_order_of_asking_what_fits(opening, asked, lent):
    async with opening() as (desk, call):
        line = await call("j1")
        first = await line.borrow(200, 99)  # the desk knows the account, and is not busy
        line.say(wire.LoanReturn((wire.amount(KEY, first.loans[0].pusd),)))
        assert await ask_at_once(line, *asked) == list(lent)
        assert desk.lent_pusd(ACCOUNT) == sum(filter(None, lent))


@pytest.mark.parametrize("leaves", [True, False])
async def test_what_lies_idle_at_another_host_is_waited_for(opening, engine, monkeypatch, leaves):
    """Red before: the first request of a host was refused while another had room for it."""
    grow(engine, "other", [GrantNeed(ACCOUNT, 900, 900)])
    async with opening() as (_, call):
        line = await call("j1")
        real, looks = broker.grow, []

        def grow_then(*given):
            grown = real(*given)
            looks.append(1)
            if leaves and len(looks) == 1:
                shrink(engine, "other", ACCOUNT, 900)
            return grown

        monkeypatch.setattr(broker, "grow", grow_then)
        monkeypatch.setattr(broker, "LEFT_AFTER_S", 0.01)
        assert isinstance(await line.borrow(500), wire.Loan if leaves else wire.LoanRefusal)
        assert len(looks) > 1, "it waited"


async def test_nothing_is_waited_for_that_others_have_spent(opening, engine, monkeypatch):
    grow(engine, "other", [GrantNeed(ACCOUNT, 900, 900)])
    with engine.begin() as connection:
        connection.execute(update(orm.GrantRow).values(spent_pusd=900))
        connection.execute(update(orm.BudgetWindowRow).values(spent_pusd=900))
    monkeypatch.setattr(broker, "LEFT_AFTER_S", 3600.0)
    async with opening() as (_, call):
        assert isinstance(await (await call("j1")).borrow(500), wire.LoanRefusal)


async def test_the_database_away_is_not_a_refusal(opening, monkeypatch):
    def away(*_):
        raise OSError("gone")

    async with opening() as (_, call):
        line = await call("j1")
        monkeypatch.setattr(broker, "grow", away)
        assert (await line.borrow(300)).away


async def test_what_a_returning_worker_declares_is_lent_and_the_rest_is_free(opening):
    async with opening() as (_, call):
        line = await call("j1")
        await line.borrow(700)
    async with opening(journals=["j1", "j2"]) as (desk, call):
        again = await call("j1", (wire.amount(KEY, 400),))
        assert desk.lent_pusd(ACCOUNT) == 400
        # j2 has not spoken: 300 of the old grant may be its own.
        refused = await again.borrow(500)
        assert refused.away
        desk.close_journal("j2")
        assert isinstance(await again.borrow(600, 2), wire.Loan)
        assert isinstance(await again.borrow(1, 3), wire.LoanRefusal)


async def test_what_a_worker_said_before_its_burial_changes_nothing_after(opening):
    async with opening() as (desk, call):
        line = await call("j1")
        await line.borrow(300)
        line.say(wire.LoanReturn((wire.amount(KEY, 300),)))
        desk.close_journal("j1")  # before the desk reads on
        await asyncio.sleep(0.05)
        other = await call("j2")
        assert isinstance(await other.borrow(1001), wire.LoanRefusal)
        assert isinstance(await other.borrow(1000, 2), wire.Loan)
        with pytest.raises(StopAsyncIteration):  # who is buried is hung up on
            await call("j1", (wire.amount(KEY, 300),))
        assert desk.lent_pusd(ACCOUNT) == 1000


async def share_all_but_one(desk, line, lent):
    """Let the desk leave what lies idle: its worker gives back all but one picodollar."""
    sharing = asyncio.create_task(desk.share(desk.read_snapshot()))
    recall = await line.hear(wire.LoanRecall)
    line.say(wire.LoanReturn((wire.amount(KEY, lent - 1),), recall.number))
    await sharing


async def test_below_a_lowered_limit_nothing_lies_idle(opening, engine):
    async with opening() as (desk, call):
        line = await call("j1")
        await line.borrow(1)
        lent = desk.lent_pusd(ACCOUNT)
        with engine.begin() as connection:
            connection.execute(update(orm.BudgetRow).values(limit_pusd=50))
        await share_all_but_one(desk, line, lent)
        assert isinstance(await line.borrow(51, 2), wire.LoanRefusal)
        assert isinstance(await line.borrow(49, 3), wire.Loan)


@pytest.mark.parametrize("before", ["soft", "gone"])
async def test_what_another_host_declares_anew_is_lent_within_its_limit(opening, engine, before):
    """Red before: the grant was cut under a desk that went on lending of what it remembered."""
    tight = BudgetSpec("team:a", "day", 50, hard=True, timezone="UTC")

    def say(*budgets):
        at_us = KEY[1] * 10**6
        declare(engine, contracts=(), budgets=budgets, config=("c", "c"), at_us=at_us)

    async with opening() as (desk, call):
        line = await call("j1")
        await line.borrow(1)
        lent = desk.lent_pusd(ACCOUNT)
        say(*([replace(tight, hard=False)] if before == "soft" else []))
        say(tight)
        assert standings(engine, "h")[ACCOUNT].mine_pusd >= lent > 50
        await share_all_but_one(desk, line, lent)
        assert isinstance(await line.borrow(51, 2), wire.LoanRefusal)
        assert isinstance(await line.borrow(49, 3), wire.Loan)


async def test_what_was_spent_before_a_restart_is_never_lent_again(
    opening, engine, opened, settled
):
    async with opening() as (_, call):
        await (await call("j1")).borrow(600)
    holds = (Hold(*KEY, 600),)
    records = [opened(1, holds=holds, bound_pusd=600), settled(1, cost_pusd=600)]
    LedgerRepository(engine, host="h").import_records(records, journal="j1", at_us=1)
    for ended in (True, False):
        async with opening(journals=[] if ended else ["j1"]) as (desk, call):
            if not ended:
                await call("j1", (wire.amount(KEY, 600),))
            other = await call("j2")
            assert isinstance(await other.borrow(401), wire.LoanRefusal)
            assert isinstance(await other.borrow(400, 2), wire.Loan)
            other.say(wire.LoanReturn((wire.amount(KEY, 400),)))
            assert desk.lent_pusd(ACCOUNT) in (0, 400)


async def test_control_without_declarations_money_is_lent_twice(opening):
    async with opening() as (_, call):
        await (await call("j1")).borrow(700)
    async with opening(journals=[]) as (_, call):  # as if nobody could have borrowed
        other = await call("j2")
        assert isinstance(await other.borrow(1000), wire.Loan)
