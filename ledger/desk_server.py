"""The budget desk of a host, inside the ledger writer: lends the host's grants to its workers.

One request at a time, so that small scopes are admitted serially. When a grant is used up it is
raised in the database; when the limit leaves no more, idle money is called back from workers, once
and for at most 50 ms, before anything is refused. What is lent counts as spent until it comes back
or the books say otherwise, so no order of crashes can lend the same money twice.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ledger import desk_wire as wire
from ledger.grants import (
    Account,
    BudgetLine,
    Need,
    Standing,
    budgets,
    grow,
    shrink,
    spent_by_journal,
    spent_of_windows,
    standings,
)
from ledger.loans import GONE, LoanBook

RECALL_S = 0.05


@dataclass(eq=False, slots=True)
class _Worker:
    """One connection."""

    writer: asyncio.StreamWriter
    journal: str = GONE
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Seen:
    """The budgets as the database has them: lines, spending by window, this host's idle grants."""

    lines: tuple[wire.Line, ...]
    spent: tuple[tuple[str, int, str], ...]
    standings: Mapping[Account, Standing]


class BudgetDesk:
    def __init__(self, engine: Engine, *, host: str, socket: Path) -> None:
        self._engine, self._host, self._socket = engine, host, socket
        self._book = LoanBook()
        self._workers: set[_Worker] = set()
        self._buried: set[str] = set()  # a name is one process's, and never comes back
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
        found = standings(self._engine, self._host)
        self._book.restore(known, found, spent_by_journal(self._engine, known))

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
        """What the books counted, by (journal, budget, window)."""
        self._book.applied(spent)

    def bury(self, journal: str) -> None:
        """Its worker is gone and all of it is in the books: what it still said is void."""
        self._book.bury(journal)
        self._buried.add(journal)
        for worker in [one for one in self._workers if one.journal == journal]:
            self._hang_up(worker)

    def look(self) -> Seen:
        """Read what `refresh` and `share` need, a few times a second; blocks."""
        lines = tuple(_line(budget) for budget in budgets(self._engine))
        spent = sorted(spent_of_windows(self._engine).items())
        return Seen(
            lines,
            tuple((key.budget_id, key.window, str(pusd)) for key, pusd in spent),
            standings(self._engine, self._host, unspent=True),
        )

    def refresh(self, seen: Seen) -> None:
        """Tell workers what changed: budgets, limits and spending."""
        news = wire.News(
            seen.spent if seen.spent != self._news else (),
            seen.lines if seen.lines != self._lines else None,
        )
        self._lines, self._news = seen.lines, seen.spent
        if news.spent or news.lines is not None:
            for worker in self._workers:
                self._send(worker, news)

    async def share(self, seen: Seen) -> None:
        """Leave other hosts what lies idle here, once that is more than is left for everyone.

        Below a limit that was lowered nothing lies idle, other hosts or not.
        """
        for account, standing in seen.standings.items():
            idle = self._book.room_pusd(account) + self._book.lent_pusd(account)
            wanted = standing.others or standing.room_pusd < 0
            if not wanted or standing.room_pusd >= idle:
                continue
            async with self._one_at_a_time:
                if self._book.lent_pusd(account):
                    await self._recall([account])
                room = self._book.room_pusd(account)
                if room > 0:
                    after = await asyncio.to_thread(shrink, self._engine, self._host, account, room)
                    self._book.granted(account, after)

    def lent_pusd(self, account: Account) -> int:
        """What this host's workers were lent beyond what the books say they spent."""
        return self._book.lent_pusd(account)

    @property
    def undeclared(self) -> frozenset[str]:
        """Journals of before a restart whose workers have yet to say what they were lent."""
        return self._book.undeclared

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
            self._hang_up(worker)
            self._serving.discard(serving)

    def _receive(self, worker: _Worker, request: wire.Request) -> None:
        if worker not in self._workers:
            return  # buried, while this lay in the socket: its money is free already
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

    def _hang_up(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        for number in list(self._recalls):
            self._answered(number, worker)
        worker.writer.close()

    def _declare(self, worker: _Worker, hello: wire.Hello) -> None:
        if hello.journal in self._buried:
            self._hang_up(worker)
            return
        worker.journal = hello.journal
        self._book.declare(hello.journal, {Account(*one.key): one.pusd for one in hello.granted})
        self._send(worker, wire.News(self._news, self._lines))

    def _take_back(self, worker: _Worker, returns: Iterable[wire.Amount]) -> None:
        for one in returns:
            self._book.take_back(worker.journal, Account(*one.key), one.pusd)

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
            return self._refused(borrow, short[0])
        if worker not in self._workers:  # it said goodbye meanwhile: nobody would carry the loan
            return wire.Refused(borrow.number, borrow.asks[0].budget_id, "0", "0", away=True)
        loans, small = [], []
        for account, asked in asks.items():
            loan, little_left = self._book.lend(
                worker.journal,
                account,
                asked_pusd=asked,
                hold_pusd=borrow.hold_pusd,
                holders=len(self._workers),
            )
            key = (account.budget_id, account.window)
            loans.append(wire.amount(key, loan))
            if little_left:
                small.append(key)
        return wire.Lent(borrow.number, tuple(loans), tuple(small))

    def _refused(self, borrow: wire.Borrow, account: Account) -> wire.Refused:
        standing = self._book.standings[account]
        room = max(0, self._book.room_pusd(account)) + max(0, standing.room_pusd)
        return wire.Refused(
            borrow.number,
            account.budget_id,
            str(standing.limit_pusd),
            str(room),
            away=self._book.is_unaccounted(account),
        )

    async def _make_room(self, asks: Mapping[Account, int], hold_pusd: int) -> list[Account]:
        """Raise grants where the host is short; returns the accounts that still are."""
        room = self._book.room_pusd
        needs = [
            Need(account, asked - room(account), hold_pusd)
            for account, asked in asks.items()
            if asked > room(account)
        ]
        if needs:
            grown = await asyncio.to_thread(grow, self._engine, self._host, needs)
            for account, standing in grown.items():
                self._book.granted(account, standing)
        return [account for account, asked in asks.items() if asked > room(account)]

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


def _line(budget: BudgetLine) -> wire.Line:
    return wire.Line(
        budget.id,
        budget.scope,
        budget.period,
        budget.timezone,
        budget.hard,
        str(budget.limit_pusd),
    )
