"""The budget broker of a host, in the ledger writer: lends the host's grants to workers.

Requests are answered in order, so small scopes are admitted one at a time. Requests that arrive
while the broker works form the next round, which costs as much as one request. If a grant is used
up, the broker raises it in the database. If the limit allows no more, it recalls idle money from
workers, once and for at most 50 ms, before it refuses. If other hosts or silent workers may return
enough, the request waits until they have noticed the shortage, then tries again. Money that a
silent worker may return is unknown, not zero. Lent money counts as spent until it returns or the
database has the spending, so crashes in any order cannot lend the same money twice.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ledger.budgets import broker_protocol as wire
from ledger.budgets.budget_snapshot import BudgetSnapshot, SpentByWindow, read_budgets
from ledger.budgets.grants import (
    NO_ROOM,
    BudgetAccount,
    grow,
    shrink,
    spent_by_journal,
    standings,
)
from ledger.budgets.loan_needs import LoanWish, grant_needs, is_new_value
from ledger.budgets.loans import GONE, LoanBook
from ledger.budgets.window_retention import LONGEST_S
from ledger.unixsocket import short_path

RECALL_S = 0.05
LEFT_AFTER_S, LEFT_TRIES = 0.5, 2  # other hosts check as often, and return idle money
_NOBODY: frozenset[str] = frozenset()
GOODBYE_S = 1.0  # time for workers to read the last messages
TOLD_AT_ONCE = 20_000  # accounts per message, far below the limit of a frame


@dataclass(eq=False, slots=True)
class _Worker:
    """The connection of one worker."""

    writer: asyncio.StreamWriter
    journal: str = GONE


@dataclass(frozen=True, slots=True)
class _LoanQueue:
    """A worker's request for a loan, waiting for its answer."""

    worker: _Worker
    borrow: wire.LoanRequest
    tries: int = LEFT_TRIES  # how often it may still wait for money of other hosts
    exact: bool = False  # no slice: after a recall that is idle money, which others lack

    @property
    def amounts(self) -> dict[BudgetAccount, int]:
        return {BudgetAccount(*ask.key): ask.pusd for ask in self.borrow.asks}

    @property
    def wishes(self) -> list[LoanWish]:
        hold_pusd, team = self.borrow.hold_pusd, self.borrow.team
        return [LoanWish(at, pusd, hold_pusd, team) for at, pusd in self.amounts.items()]


class BudgetBroker:
    def __init__(self, engine: Engine, *, host: str, socket: Path) -> None:
        self._engine, self._host, self._socket = engine, host, socket
        self._book = LoanBook()
        self._workers: set[_Worker] = set()
        self._buried: set[str] = set()  # closed journals: a name is never used again
        self._one_at_a_time = asyncio.Lock()
        self._asking: list[_LoanQueue] = []
        self._recalls: dict[int, tuple[set[_Worker], asyncio.Future[None]]] = {}
        self._recall_number = 0
        self._lines: tuple[wire.BudgetTerms, ...] | None = None  # None until read: not sent then
        self._news: SpentByWindow = ()
        self._known: frozenset[tuple[str, int, str]] = frozenset()  # `_news` as a set
        self._serving: set[asyncio.Task[None]] = set()
        self._borrowing: set[asyncio.Task[None]] = set()  # also for workers that disconnected
        self._server: asyncio.Server | None = None

    def restore(self, journals: Iterable[str]) -> None:
        """Read the grants from the database after a start.

        None of that money is lent again until every journal's owner has declared its loans or is
        known to be gone. Until then only new grants are lent.
        """
        known = list(journals)
        found = standings(self._engine, self._host)
        self._book.restore(known, found, spent_by_journal(self._engine, known))

    async def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        with short_path(self._socket) as path:
            self._server = await asyncio.start_unix_server(self._serve, path)
        self._socket.chmod(0o600)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.writer.close()
        for task in self._borrowing:
            task.cancel()
        ending = [*self._serving, *self._borrowing]
        if ending:
            await asyncio.wait(ending, timeout=GOODBYE_S)
        for worker in self._workers:  # a stopped worker that reads nothing is not waited for
            worker.writer.transport.abort()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._socket.unlink(missing_ok=True)

    def apply_spent(self, spent: Mapping[tuple[str, str, int], int]) -> None:
        """Apply spending that the ledger booked, in pico-USD by (journal, budget, window)."""
        self._book.apply_spent(spent)

    def close_journal(self, journal: str) -> None:
        """Close a journal whose worker has ended and whose records are all booked."""
        self._book.close_journal(journal)
        self._buried.add(journal)
        for worker in tuple(self._workers):
            if worker.journal == journal:
                self._hang_up(worker)

    def read_snapshot(self, at_us: int | None = None) -> BudgetSnapshot:
        """Read the data for `refresh` and `share` with `read_budgets`. Blocks."""
        return read_budgets(self._engine, self._host, at_us)

    def refresh(self, seen: BudgetSnapshot) -> None:
        """Send workers the changes of budgets, limits and spending."""
        if seen.at_us is not None:
            self._book.forget_ended(seen.at_us // 10**6 - LONGEST_S)
        moved = tuple(amount for amount in seen.spent if amount not in self._known)
        lines = seen.lines if seen.lines != self._lines else None
        self._lines, self._news, self._known = seen.lines, seen.spent, frozenset(seen.spent)
        if moved or lines is not None:
            for worker in self._workers:
                self._send_updates(worker, moved, lines)

    async def share(self, seen: BudgetSnapshot) -> None:
        """Give idle money back for other hosts, if more is idle here than is left to grant.

        Money above a lowered limit is given back even without other hosts.
        """
        for account in seen.accounts_to_share():
            standing = seen.standings[account]
            idle = self._book.idle_pusd(account) + self._book.lent_pusd(account)
            if standing.remaining_pusd >= idle:
                continue
            async with self._one_at_a_time:
                if self._book.lent_pusd(account):
                    await self._recall([account])
                room = self._book.idle_pusd(account)
                if room > 0:
                    after = await asyncio.to_thread(shrink, self._engine, self._host, account, room)
                    self._book.set_grant(account, after)

    def lent_pusd(self, account: BudgetAccount) -> int:
        """Return pico-USD lent to this host's workers and not yet booked as spent."""
        return self._book.lent_pusd(account)

    def at_stake(self, journal: str) -> dict[BudgetAccount, int]:
        return self._book.at_stake(journal)

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
            return  # its journal was closed while this message waited: its money is free already
        if isinstance(request, wire.ClientHello):
            self._declare(worker, request)
        elif isinstance(request, wire.LoanReturn):
            self._record_returns(worker, request.returns)
            if request.recall is not None:
                self._record_answer(request.recall, worker)
        else:
            self._record_returns(worker, request.returns)
            self._start(self._borrow(_LoanQueue(worker, request)))

    def _start(self, borrowing: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(borrowing)
        self._borrowing.add(task)
        task.add_done_callback(self._borrowing.discard)

    def _hang_up(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        for number in list(self._recalls):
            self._record_answer(number, worker)
        worker.writer.close()

    def _declare(self, worker: _Worker, hello: wire.ClientHello) -> None:
        if hello.journal in self._buried:
            self._hang_up(worker)
            return
        worker.journal = hello.journal
        granted = {BudgetAccount(*amount.key): amount.pusd for amount in hello.granted}
        self._book.declare(hello.journal, granted)
        self._send_updates(worker, self._news, self._lines)

    def _record_returns(self, worker: _Worker, returns: Iterable[wire.AccountAmount]) -> None:
        for return_ in returns:
            self._book.record_return(worker.journal, BudgetAccount(*return_.key), return_.pusd)

    async def _borrow(self, queue: _LoanQueue, *, after_s: float = 0.0) -> None:
        """Answer a loan request. The first call that gets the lock answers all waiting requests."""
        if after_s:
            await asyncio.sleep(after_s)
        self._asking.append(queue)
        async with self._one_at_a_time:
            asking, self._asking = self._asking, []
            if asking:
                await self._answer(asking)

    async def _answer(self, asking: list[_LoanQueue]) -> None:
        waiting, silent = asking, _NOBODY
        try:
            waiting, recalled = await self._lend(asking), set[BudgetAccount]()
            while short := [each for each in self._all_short(waiting) if each not in recalled]:
                silent |= await self._recall(short)
                recalled.update(short)
                waiting = await self._lend([replace(queue, exact=True) for queue in waiting])
            while waiting:
                queue = waiting[0]
                if not self._may_fit(queue) or await self._lend([queue]):
                    self._refuse(queue, silent)
                waiting = waiting[1:]
        except (DBAPIError, OSError):
            for queue in waiting:
                first = queue.borrow.asks[0].budget_id
                answer = wire.LoanRefusal(queue.borrow.number, first, "0", "0", away=True)
                self._send(queue.worker, answer)

    async def _lend(self, asking: Sequence[_LoanQueue]) -> list[_LoanQueue]:
        """Lend to the requests in order. Return those without room."""
        await self._raise_grants(asking)
        waiting = []
        for queue in asking:
            if self._short(queue):
                waiting.append(queue)
            else:
                self._send(queue.worker, self._answer_loan(queue))
        return waiting

    def _answer_loan(self, queue: _LoanQueue) -> wire.Answer:
        worker, borrow = queue.worker, queue.borrow
        if worker not in self._workers:  # disconnected in the meantime: nobody would have the loan
            return wire.LoanRefusal(borrow.number, borrow.asks[0].budget_id, "0", "0", away=True)
        loans, small = [], []
        for account, asked in queue.amounts.items():
            loan, little_left = self._book.lend(
                worker.journal,
                account,
                asked_pusd=asked,
                hold_pusd=borrow.hold_pusd,
                holders=len(self._workers),
                exact=queue.exact,
            )
            key = (account.budget_id, account.window)
            loans.append(wire.amount(key, loan))
            if little_left:
                small.append(key)
        return wire.Loan(borrow.number, tuple(loans), tuple(small))

    def _short(self, queue: _LoanQueue) -> list[BudgetAccount]:
        """Return the accounts that lack money for the request."""
        room = self._book.remaining_pusd
        return [account for account, asked in queue.amounts.items() if asked > room(account)]

    def _all_short(self, waiting: Iterable[_LoanQueue]) -> list[BudgetAccount]:
        return list(dict.fromkeys(chain.from_iterable(map(self._short, waiting))))

    def _may_fit(
        self, queue: _LoanQueue, *, silent: frozenset[str] = _NOBODY, with_others: bool = False
    ) -> bool:
        """Return whether the limits last read leave room for this request alone.

        `silent`: also count money that these journals may return. `with_others`: also count unspent
        grants of other hosts.
        """
        for account in self._short(queue):
            standing = self._book.standings.get(account)
            if standing is None:
                continue
            left = standing.remaining_pusd + (standing.elsewhere_pusd if with_others else 0)
            left += sum(self._book.at_stake(journal).get(account, 0) for journal in silent)
            if queue.amounts[account] > self._book.remaining_pusd(account) + left:
                return False
        return True

    def _refuse(self, queue: _LoanQueue, silent: frozenset[str]) -> None:
        """Refuse a request, or retry it if other hosts or silent workers may return enough."""
        if queue.tries and self._may_fit(queue, silent=silent, with_others=True):
            again = replace(queue, tries=queue.tries - 1)
            self._start(self._borrow(again, after_s=LEFT_AFTER_S))
            return
        short = self._short(queue)
        # Prefer an account with a window: a tag value without one may lack it only because another
        # budget of its hold refused.
        account = next((each for each in short if each in self._book.standings), short[0])
        standing = self._book.standings.get(account, NO_ROOM)
        room = max(0, self._book.remaining_pusd(account)) + max(0, standing.remaining_pusd)
        may_come = bool(silent) and self._may_fit(queue, silent=silent)
        unknown = may_come or self._book.is_unaccounted(account)
        refusal = wire.LoanRefusal(
            queue.borrow.number, account.budget_id, str(standing.limit_pusd), str(room),
            away=unknown, unspent_pusd=str(standing.unspent_pusd),
        )  # fmt: skip
        for asked in queue.amounts:
            self._book.forget_unmade(asked)
        self._send(queue.worker, refusal)

    async def _raise_grants(self, asking: Sequence[_LoanQueue]) -> None:
        """Raise all grants that are too small for the requests, in one transaction.

        New tag values come last, so that none is made for a hold that is already refused.
        """
        new = {at for queue in asking for at in queue.amounts if is_new_value(self._book, at)}
        await self._grow(
            [wish for queue in asking for wish in queue.wishes if wish.account not in new]
        )
        if new:
            fit = [queue for queue in asking if new.issuperset(self._short(queue))]
            wishes = [wish for queue in fit for wish in queue.wishes if wish.account in new]
            await self._grow(wishes, [new.intersection(queue.amounts) for queue in fit])

    async def _grow(
        self, wishes: Iterable[LoanWish], together: Sequence[set[BudgetAccount]] = ()
    ) -> None:
        needs = grant_needs(self._book, wishes)
        if needs:
            grown = await asyncio.to_thread(grow, self._engine, self._host, needs, together)
            for account, standing in grown.items():
                self._book.set_grant(account, standing)

    async def _recall(self, accounts: list[BudgetAccount]) -> frozenset[str]:
        """Recall idle money from every worker and wait at most `RECALL_S`.

        Returns the journals of workers that have not answered by then.
        """
        if not self._workers:
            return _NOBODY
        self._recall_number += 1
        number, done = self._recall_number, asyncio.get_running_loop().create_future()
        silent = set(self._workers)
        self._recalls[number] = (silent, done)
        message = wire.LoanRecall(
            number, tuple((account.budget_id, account.window) for account in accounts)
        )
        for worker in self._workers:
            self._send(worker, message)
        try:
            async with asyncio.timeout(RECALL_S):
                await done
        except TimeoutError:
            return frozenset(worker.journal for worker in silent)
        finally:
            del self._recalls[number]
        return _NOBODY

    def _record_answer(self, number: int, worker: _Worker) -> None:
        waiting = self._recalls.get(number)
        if waiting is not None:
            waiting[0].discard(worker)
            if not waiting[0] and not waiting[1].done():
                waiting[1].set_result(None)

    def _send_updates(
        self, worker: _Worker, spent: SpentByWindow, lines: tuple[wire.BudgetTerms, ...] | None
    ) -> None:
        """Send spending first, then budgets: a worker that knows a budget knows its spending."""
        whole = len(spent) - len(spent) % TOLD_AT_ONCE
        for start in range(0, whole, TOLD_AT_ONCE):
            self._send(worker, wire.BudgetUpdate(spent[start : start + TOLD_AT_ONCE]))
        self._send(worker, wire.BudgetUpdate(spent[whole:], lines))

    def _send(self, worker: _Worker, message: wire.Answer) -> None:
        if not worker.writer.is_closing():
            worker.writer.write(wire.frame(message))
