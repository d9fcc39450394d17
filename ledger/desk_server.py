"""The budget desk of a host, inside the ledger writer: lends the host's grants to its workers.

One request at a time, so that small scopes are admitted serially. When a grant is used up it is
raised in the database; when the limit leaves no more, idle money is called back from workers, once
and for at most 50 ms, before anything is refused. What is lent counts as spent until it comes back
or the books say otherwise, so no order of crashes can lend the same money twice.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ledger import desk_wire as wire
from ledger.escrow import Pot, is_sliced, loan_pusd
from ledger.grants import (
    Account,
    BudgetLine,
    Need,
    Standing,
    budgets,
    grow,
    spent_by_journal,
    spent_of_windows,
    standings,
)

RECALL_S = 0.05
# Holders beside the journals, whose names contain neither.
GONE = ""  # what ended workers spent
UNKNOWN = "?"  # grants of before a restart that no worker has accounted for


@dataclass(eq=False, slots=True)
class _Worker:
    """One connection."""

    writer: asyncio.StreamWriter
    journal: str = GONE
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class BudgetDesk:
    def __init__(self, engine: Engine, *, host: str, socket: Path) -> None:
        self._engine, self._host, self._socket = engine, host, socket
        self._pots: dict[Account, Pot] = {}
        self._standings: dict[Account, Standing] = {}
        self._spent: dict[tuple[str, Account], int] = {}
        self._undeclared: set[str] = set()
        self._workers: set[_Worker] = set()
        self._one_at_a_time = asyncio.Lock()
        self._recalls: dict[int, tuple[set[_Worker], asyncio.Future[None]]] = {}
        self._recall_number = 0
        self._lines: tuple[wire.Line, ...] | None = None  # not read yet: never told as none
        self._news: tuple[tuple[str, int, str], ...] = ()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def restore(self, journals: Iterable[str]) -> None:
        """Read the grants, of which nobody yet says how much is lent.

        Until every journal's owner has said so, or is known to be gone, none of that money is
        lent again: only what the database adds.
        """
        known = list(journals)
        self._undeclared = set(known)
        self._spent = spent_by_journal(self._engine, known)
        for account, standing in standings(self._engine, self._host).items():
            alive = sum(self._spent.get((journal, account), 0) for journal in known)
            gone = standing.mine_spent_pusd - alive
            granted = {GONE: gone, UNKNOWN: standing.mine_pusd - gone}
            self._pots[account] = Pot(standing.mine_pusd, granted)
        self._all_declared()

    async def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        with wire.short_path(self._socket) as path:
            self._server = await asyncio.start_unix_server(self._serve, path)
        self._socket.chmod(0o600)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.writer.close()
            for task in worker.tasks:
                task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._socket.unlink(missing_ok=True)

    def applied(self, spent: Mapping[tuple[str, str, int], int]) -> None:
        """What the books counted, by journal: called after each applied batch."""
        for (journal, budget_id, window), pusd in spent.items():
            account = Account(budget_id, window)
            pot = self._pots.get(account)
            if pot is None:
                continue
            if journal in pot.granted or journal in self._undeclared:
                key = (journal, account)
                self._spent[key] = self._spent.get(key, 0) + pusd
            else:
                self._pots[account] = _lent(pot, GONE, pot.granted.get(GONE, 0) + pusd)

    def bury(self, journal: str) -> None:
        """Its worker is gone and all of it is in the books: what it did not spend is free."""
        for account, pot in self._pots.items():
            if journal in pot.granted or (journal, account) in self._spent:
                spent = self._spent.pop((journal, account), 0)
                rest = {name: pusd for name, pusd in pot.granted.items() if name != journal}
                rest[GONE] = rest.get(GONE, 0) + spent
                if UNKNOWN in rest and journal in self._undeclared:
                    rest[UNKNOWN] -= spent
                self._pots[account] = replace(pot, granted=rest)
        self._undeclared.discard(journal)
        self._all_declared()

    async def refresh(self) -> None:
        """Tell workers what changed: budgets, limits and spending. Called a few times a second."""
        lines, spent = await asyncio.to_thread(self._read_news)
        news = wire.News(
            spent if spent != self._news else (), lines if lines != self._lines else None
        )
        self._lines, self._news = lines, spent
        if news.spent or news.lines is not None:
            for worker in self._workers:
                self._send(worker, news)

    def lent_pusd(self, account: Account) -> int:
        """What workers hold of the account beyond what the books say they spent."""
        pot = self._pots.get(account)
        if pot is None:
            return 0
        return sum(
            pusd - self._spent.get((journal, account), 0)
            for journal, pusd in pot.granted.items()
            if journal not in (GONE, UNKNOWN)
        )

    def _read_news(self) -> tuple[tuple[wire.Line, ...], tuple[tuple[str, int, str], ...]]:
        lines = tuple(_line(budget) for budget in budgets(self._engine))
        spent = sorted(spent_of_windows(self._engine).items())
        return lines, tuple((key.budget_id, key.window, str(pusd)) for key, pusd in spent)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = _Worker(writer)
        self._workers.add(worker)
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        try:
            async for payload in wire.payloads(reader):
                self._receive(worker, wire.REQUESTS.decode(payload))
        finally:
            self._workers.discard(worker)
            for number in list(self._recalls):
                self._answered(number, worker)
            writer.close()
            self._serving.discard(serving)

    def _receive(self, worker: _Worker, request: wire.Request) -> None:
        if isinstance(request, wire.Hello):
            self._declare(worker, request)
        elif isinstance(request, wire.Return):
            self._take_back(worker, request.returns)
            if request.recall is not None:
                self._answered(request.recall, worker)
        else:
            self._take_back(worker, request.returns)
            task = asyncio.get_running_loop().create_task(self._borrow(worker, request))
            worker.tasks.add(task)
            task.add_done_callback(worker.tasks.discard)

    def _declare(self, worker: _Worker, hello: wire.Hello) -> None:
        worker.journal = hello.journal
        declared = {Account(*one.key): one.pusd for one in hello.granted}
        for account in {*self._pots, *declared}:
            pot = self._pots.get(account, Pot(0))
            lent = declared.get(account, 0)
            if not lent and hello.journal not in pot.granted:
                continue
            if UNKNOWN in pot.granted and hello.journal in self._undeclared:
                pot = _lent(pot, UNKNOWN, pot.granted[UNKNOWN] - lent)
            self._pots[account] = _lent(pot, hello.journal, lent)
        self._undeclared.discard(hello.journal)
        self._all_declared()
        self._send(worker, wire.News(self._news, self._lines))

    def _all_declared(self) -> None:
        """Once nobody is missing, what no one accounted for was not lent."""
        if self._undeclared:
            return
        for account, pot in self._pots.items():
            if UNKNOWN in pot.granted:
                rest = {name: pusd for name, pusd in pot.granted.items() if name != UNKNOWN}
                self._pots[account] = replace(pot, granted=rest)

    def _take_back(self, worker: _Worker, returns: Iterable[wire.Amount]) -> None:
        for one in returns:
            account = Account(*one.key)
            pot = self._pots.get(account)
            if pot is not None:
                rest = pot.granted.get(worker.journal, 0) - one.pusd
                self._pots[account] = _lent(pot, worker.journal, rest)

    async def _borrow(self, worker: _Worker, borrow: wire.Borrow) -> None:
        asks = {Account(*one.key): one.pusd for one in borrow.asks}
        async with self._one_at_a_time:
            try:
                answer = await self._lend(worker, borrow, asks)
            except (DBAPIError, OSError):
                first = borrow.asks[0].budget_id
                answer = wire.Refused(borrow.number, first, "0", "0", away=True)
        self._send(worker, answer)

    async def _lend(
        self, worker: _Worker, borrow: wire.Borrow, asks: Mapping[Account, int]
    ) -> wire.Answer:
        short = await self._make_room(asks, borrow.hold_pusd)
        if short:
            await self._recall(short)
            short = await self._make_room(asks, borrow.hold_pusd)
        if short:
            account, standing = short[0], self._standings[short[0]]
            return wire.Refused(
                borrow.number,
                account.budget_id,
                str(standing.limit_pusd),
                str(max(0, self._room(account)) + max(0, standing.room_pusd)),
                away=self._pots[account].granted.get(UNKNOWN, 0) > 0,
            )
        if worker not in self._workers:  # it said goodbye meanwhile: nobody would carry the loan
            return wire.Refused(borrow.number, borrow.asks[0].budget_id, "0", "0", away=True)
        loans, small = [], []
        holders = max(1, len(self._workers))
        for account, asked in asks.items():
            room = self._room(account)
            known = self._standings.get(account)
            total = room + (max(0, known.room_pusd) if known else 0)
            wanted = loan_pusd(total, asked, borrow.hold_pusd, holders)
            loan = max(asked, min(wanted, room))
            pot = self._pots[account]
            lent = pot.granted.get(worker.journal, 0) + loan
            self._pots[account] = _lent(pot, worker.journal, lent)
            key = (account.budget_id, account.window)
            loans.append(wire.amount(key, loan))
            if not is_sliced(total - loan, borrow.hold_pusd, holders):
                small.append(key)
        return wire.Lent(borrow.number, tuple(loans), tuple(small))

    async def _make_room(self, asks: Mapping[Account, int], hold_pusd: int) -> list[Account]:
        """Raise grants where the host is short; returns the accounts that still are."""
        needs = [
            Need(account, asked - self._room(account), hold_pusd)
            for account, asked in asks.items()
            if asked > self._room(account)
        ]
        if not needs:
            return []
        grown = await asyncio.to_thread(grow, self._engine, self._host, needs)
        for account, standing in grown.items():
            pot = self._pots.get(account, Pot(0))
            self._pots[account] = replace(pot, limit_pusd=standing.mine_pusd)
            self._standings[account] = standing
        return [account for account, asked in asks.items() if asked > self._room(account)]

    def _room(self, account: Account) -> int:
        return self._pots.get(account, Pot(0)).room_pusd

    async def _recall(self, accounts: list[Account]) -> None:
        """Call idle money back from every worker and wait, at most `RECALL_S`."""
        if not self._workers:
            return
        self._recall_number += 1
        number, done = self._recall_number, asyncio.get_running_loop().create_future()
        self._recalls[number] = (set(self._workers), done)
        message = wire.Recall(number, tuple((one.budget_id, one.window) for one in accounts))
        for worker in self._workers:
            self._send(worker, message)
        try:
            async with asyncio.timeout(RECALL_S):
                await done
        except TimeoutError:
            pass
        finally:
            del self._recalls[number]

    def _answered(self, number: int, worker: _Worker) -> None:
        waiting = self._recalls.get(number)
        if waiting is not None:
            waiting[0].discard(worker)
            if not waiting[0] and not waiting[1].done():
                waiting[1].set_result(None)

    def _send(self, worker: _Worker, message: wire.Answer) -> None:
        if not worker.writer.is_closing():
            worker.writer.write(wire.frame(message))


def _lent(pot: Pot, journal: str, pusd: int) -> Pot:
    return replace(pot, granted={**pot.granted, journal: pusd})


def _line(budget: BudgetLine) -> wire.Line:
    return wire.Line(
        budget.id,
        budget.scope,
        budget.period,
        budget.timezone,
        budget.hard,
        str(budget.limit_pusd),
    )
