"""A worker's side of the budget broker: holds from borrowed slices, mostly without a wait.

`hold` reserves an attempt's bound on every hard budget that binds it, or on none. If the slices
suffice, nothing is awaited. Otherwise the broker lends, or refuses after recalling idle money.
`release` ends the holds at the actual cost. Soft budgets are counted at settle and hold nothing. If
the broker is away, the slices are used up; after that `hold` raises `BrokerUnavailable`.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ledger.budgets import broker_protocol as wire
from ledger.budgets.binding import binding, default_of, is_default
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.budgets.escrow import NOTHING, Slice, hold, scope_order, settle
from ledger.budgets.scopes import team_of, valued_tag
from ledger.budgets.windows import CalendarWindow, window_at
from ledger.journals.records import Hold
from ledger.unixsocket import short_path

ANSWER_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 10.0
RETRY_S = 0.05
TURN_S = 3600  # windows are checked again after this time, even if none ended
SCOPES_LIMIT = 4096  # sets of scopes whose budgets are cached
_US_PER_S = 1_000_000


class BrokerUnavailable(Exception):
    """The broker does not know whether a budget has room: answer 503, not 429."""


@dataclass(slots=True)
class _Budget:
    """A budget with its account in the current window, which ends at `ends_s`."""

    line: wire.BudgetTerms
    hard: bool
    limit_pusd: int
    place: tuple[int, str]  # sort key: all code takes scopes in this order
    account: wire.AccountKey
    ends_s: int = 0

    @property
    def id(self) -> str:
        return self.line.id

    @property
    def period(self) -> str:
        return self.line.period


@dataclass(slots=True)
class _OpenLoan:
    """A loan request without an answer yet. The bound is held as soon as the loan arrives."""

    answer: asyncio.Future[wire.Loan | wire.LoanRefusal]
    bound_pusd: int


class BudgetClient:
    """A worker's budget client. The database counts its spending under the journal's name."""

    def __init__(
        self,
        socket: Path,
        *,
        worker: str,
        journal: str = "",
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.journal = journal or worker
        self._socket, self._worker, self._now_us = socket, worker, now_us
        self._budgets: dict[str, list[_Budget]] | None = None  # by scope
        self._of_scopes: dict[tuple[str, ...], tuple[_Budget, ...]] = {}
        self._windows: dict[str, CalendarWindow] = {}  # by budget; one for all that a default binds
        self.valued_tags = frozenset[str]()  # tags with a budget for each value
        self._defaults = False  # whether there are any
        self._windows_us = (0, 0)  # from and until when all of these hold
        self._edition = object()
        self._slices: dict[wire.AccountKey, Slice] = {}
        self._over: set[wire.AccountKey] = set()  # slices whose window had ended an hour ago
        self._spent: dict[wire.AccountKey, int] = {}
        self._small: frozenset[wire.AccountKey] = frozenset()
        self._held: dict[str, tuple[Hold, ...]] = {}
        self._asked: dict[int, _OpenLoan] = {}
        self._number = 0
        self._writer: asyncio.StreamWriter | None = None
        self._told = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._writer is not None

    @property
    def is_told(self) -> bool:
        """Return whether the broker has sent the budgets."""
        return self._budgets is not None

    async def connect(self) -> None:
        """Connect, and wait for the first update, at most `CONNECT_TIMEOUT_S`."""
        self._task = asyncio.create_task(self._stay_connected())
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._told.wait()
        except TimeoutError:
            return

    async def aclose(self) -> None:
        """Return all free money and disconnect."""
        self._return_loans(list(self._slices))
        if self._writer is not None:
            self._writer.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def edition(self) -> object:
        """Return an object that changes with every update and at the end of every window."""
        since_us, until_us = self._windows_us
        if not since_us <= self._now_us() < until_us:
            self._move_windows()
        return self._edition

    def remaining_pusd(self, scopes: Sequence[str]) -> int | None:
        """Return the least unspent amount of the hard budgets, in pico-USD; `None` without one.

        The amount may be too high, because holds of others are not counted: `hold` decides.
        """
        tightest = self._tightest(scopes)
        return None if tightest is None else tightest[0]

    def tightest(self, scopes: Sequence[str]) -> BudgetRefusal | None:
        """Return the hard budget with the least left, as a refusal."""
        found = self._tightest(scopes)
        if found is None:
            return None
        room_pusd, budget = found
        name, start_s = budget.account
        window = CalendarWindow(start_s, budget.ends_s)
        return _refusal(name, budget.limit_pusd, room_pusd, window)

    async def hold(
        self, attempt_id: str, scopes: Sequence[str], bound_pusd: int
    ) -> tuple[Hold, ...] | BudgetRefusal:
        if self._budgets is None:
            raise BrokerUnavailable("the budgets are not known yet")
        slices, holds = self._slices, []
        taken: list[wire.AccountKey] = []
        short: list[wire.AccountKey] = []
        for budget in self._of(scopes):
            account = name, window = budget.account
            if not budget.hard:
                holds.append(Hold(name, window, 0))
                continue
            holds.append(Hold(name, window, bound_pusd))
            piece = hold(slices.get(account, NOTHING), bound_pusd)
            if piece is None:
                short.append(account)
            else:
                slices[account] = piece
                taken.append(account)
        if short:
            refusal = await self._borrow(short, taken, bound_pusd, team_of(scopes))
            if refusal is not None:
                return self._refusal(refusal)
        held = self._held[attempt_id] = tuple(holds)
        return held

    def release(self, attempt_id: str, actual_pusd: int) -> None:
        """End an attempt's holds at its cost. A second call changes nothing."""
        for held in self._held.pop(attempt_id, ()):
            key = (held.scope, held.window)
            piece = self._slices.get(key)
            if piece is not None and held.amount_pusd:
                self._slices[key] = settle(piece, held.amount_pusd, actual_pusd)
                if key in self._small:
                    self._return_loans([key])

    async def _borrow(
        self, short: list[wire.AccountKey], taken: list[wire.AccountKey], bound_pusd: int, team: str
    ) -> wire.LoanRefusal | None:
        """Request the whole bound on accounts that lack money, and return their free money."""
        if self._writer is None:
            self._undo(taken, bound_pusd)
            raise BrokerUnavailable("the budget desk cannot be reached")
        returns = self._take_free(short)
        asks = tuple(
            wire.amount(key, bound_pusd + self._slices.get(key, NOTHING).overdrawn_pusd)
            for key in short
        )
        self._number += 1
        asked = _OpenLoan(asyncio.get_running_loop().create_future(), bound_pusd)
        self._asked[self._number] = asked
        self._send(wire.LoanRequest(self._number, asks, bound_pusd, returns, team))
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                answer = await asked.answer
        except BaseException as error:
            # Undo: return the holds, and a loan that arrived in the same loop iteration.
            self._undo(taken, bound_pusd)
            if asked.answer.done() and not asked.answer.cancelled():
                self._undo_loan(asked)
            if isinstance(error, TimeoutError):
                raise BrokerUnavailable("the budget desk does not answer") from error
            raise
        if isinstance(answer, wire.Loan):
            return None
        self._undo(taken, bound_pusd)
        if answer.away:
            raise BrokerUnavailable("the remaining budget is not known now")
        return answer

    def _undo(self, keys: list[wire.AccountKey], bound_pusd: int) -> None:
        for key in keys:
            self._slices[key] = settle(self._slices[key], bound_pusd, 0)
        self._return_loans([key for key in keys if key in self._small])

    def _undo_loan(self, asked: _OpenLoan) -> None:
        answer = asked.answer.result() if asked.answer.exception() is None else None
        if isinstance(answer, wire.Loan):
            self._undo([loan.key for loan in answer.loans], asked.bound_pusd)

    def _tightest(self, scopes: Sequence[str]) -> tuple[int, _Budget] | None:
        found = [
            (budget.limit_pusd - self._spent.get(budget.account, 0), budget.place, budget)
            for budget in self._of(scopes)
            if budget.hard
        ]
        if not found:
            return None
        room_pusd, _, budget = min(found)  # places differ
        return room_pusd, budget

    def _of(self, scopes: Sequence[str]) -> tuple[_Budget, ...]:
        """Return the budgets on these scopes in order, with their current accounts."""
        self.edition()
        names = tuple(scopes)
        found = self._of_scopes.get(names)
        if found is None:
            budgets = [_own(name, budget) for name, budget in binding(self._budgets or {}, names)]
            found = tuple(sorted(budgets, key=_order_of))
            if len(self._of_scopes) >= SCOPES_LIMIT:
                self._of_scopes.clear()  # frequent sets are cached again at once
            self._of_scopes[names] = found
        return found

    def _move_windows(self) -> None:
        """Move every budget to the account of its current window.

        Slices of ended windows return their free money, and are dropped an hour later if nothing is
        held: after a clock that was ahead is set back, the spending is still known.
        """
        now_s = self._now_us() // _US_PER_S
        since_s, until_s = now_s, now_s + TURN_S
        for budget in [item for some in (self._budgets or {}).values() for item in some]:
            line = budget.line
            window = window_at(line.period, line.timezone, now_s)  # type: ignore[arg-type]  # checked where budgets are made
            self._windows[line.id] = window
            budget.account, budget.ends_s = (line.id, window.start_s), window.end_s
            until_s = min(until_s, window.end_s)
        self._windows_us = since_s * _US_PER_S, until_s * _US_PER_S
        self._edition = object()
        if self._defaults:
            self._of_scopes.clear()  # its accounts are of the windows before
        over = {key for key in self._slices if self._is_ended(key)}
        self._return_loans(list(over - self._over))
        for key in [key for key in over & self._over if not self._slices[key].held_pusd]:
            del self._slices[key]
        self._over = over
        for key in [key for key in self._spent if self._is_ended(key)]:
            del self._spent[key]

    def _window_of(self, budget_id: str) -> CalendarWindow | None:
        found = self._windows.get(budget_id)
        return found or self._windows.get(default_of(budget_id) or "")

    def _is_ended(self, key: wire.AccountKey) -> bool:
        current = self._window_of(key[0])
        return current is not None and key[1] < current.start_s

    def _refusal(self, refused: wire.LoanRefusal) -> BudgetRefusal:
        name, now_s = refused.budget_id, self._now_us() // _US_PER_S
        window = self._window_of(name) or CalendarWindow(now_s, now_s)
        refusal = _refusal(name, int(refused.limit_pusd), int(refused.room_pusd), window)
        return replace(refusal, unspent_pusd=int(refused.unspent_pusd))

    def _take_free(self, keys: Sequence[wire.AccountKey]) -> tuple[wire.AccountAmount, ...]:
        """Remove the free money from slices, and return it as amounts to send back."""
        freed = []
        for key in keys:
            piece = self._slices.get(key, NOTHING)
            if piece.free_pusd > 0:
                freed.append(wire.amount(key, piece.free_pusd))
                self._slices[key] = piece._replace(
                    granted_pusd=piece.granted_pusd - piece.free_pusd
                )
        return tuple(freed)

    def _return_loans(self, keys: Sequence[wire.AccountKey], recall: int | None = None) -> None:
        if self._writer is None:
            return
        freed = self._take_free(keys)
        if freed or recall is not None:
            self._send(wire.LoanReturn(freed, recall))

    def _send(self, message: wire.Request) -> None:
        assert self._writer is not None
        self._writer.write(wire.frame(message))

    async def _stay_connected(self) -> None:
        while True:
            try:
                with short_path(self._socket) as path:
                    reader, writer = await asyncio.open_unix_connection(path)
            except OSError:
                await asyncio.sleep(RETRY_S)
                continue
            self._writer = writer
            granted = tuple(
                wire.amount(key, piece.granted_pusd) for key, piece in self._slices.items()
            )
            self._send(wire.ClientHello(self._worker, self.journal, granted))
            try:
                async for payload in wire.payloads(reader):
                    self._receive(wire.ANSWERS.decode(payload))
            finally:
                self._writer = None
                writer.close()
                self._fail_pending()

    def _fail_pending(self) -> None:
        asked, self._asked = self._asked, {}
        for request in asked.values():
            if not request.answer.done():
                request.answer.set_exception(BrokerUnavailable("the budget desk went away"))

    def _receive(self, answer: wire.Answer) -> None:
        if isinstance(answer, wire.BudgetUpdate):
            self._learn(answer)
        elif isinstance(answer, wire.LoanRecall):
            self._return_loans(answer.accounts, answer.number)
        else:
            asked = self._asked.pop(answer.number, None)
            if isinstance(answer, wire.Loan):
                self._accept(answer, asked)
            if asked is not None and not asked.answer.done():
                asked.answer.set_result(answer)

    def _accept(self, answer: wire.Loan, asked: _OpenLoan | None) -> None:
        waited_for = asked is not None and not asked.answer.done()
        for loan in answer.loans:
            piece = self._slices.get(loan.key, NOTHING)
            piece = piece._replace(granted_pusd=piece.granted_pusd + loan.pusd)
            if waited_for and asked is not None:
                piece = piece._replace(held_pusd=piece.held_pusd + asked.bound_pusd)
            self._slices[loan.key] = piece
        keys = {loan.key for loan in answer.loans}
        self._small = (self._small - keys) | set(answer.small)
        if not waited_for:
            self._return_loans(list(keys))

    def _learn(self, news: wire.BudgetUpdate) -> None:
        if news.lines is not None:
            budgets: dict[str, list[_Budget]] = {}
            for line in news.lines:
                limit_pusd, place = int(line.limit_pusd), scope_order(line.id)
                budget = _Budget(line, line.hard, limit_pusd, place, (line.id, 0))
                budgets.setdefault(line.scope, []).append(budget)
            self._budgets, self._windows, self._of_scopes = budgets, {}, {}
            self._defaults = any(is_default(scope) for scope in budgets)
            self.valued_tags = frozenset(filter(None, map(valued_tag, budgets)))
            self._move_windows()
        self._spent.update({(name, start): int(text) for name, start, text in news.spent})
        self._edition = object()
        if self._budgets is not None:
            self._told.set()


def _refusal(scope: str, limit_pusd: int, room_pusd: int, window: CalendarWindow) -> BudgetRefusal:
    since_us, until_us = window.start_s * _US_PER_S, window.end_s * _US_PER_S
    return BudgetRefusal(scope, limit_pusd, room_pusd, since_us, until_us)


def _own(name: str, budget: _Budget) -> _Budget:
    """Return the budget, or for a default a copy with the account of this name."""
    if name == budget.line.id:
        return budget
    account = name, budget.account[1]
    place = scope_order(name)
    return _Budget(budget.line, budget.hard, budget.limit_pusd, place, account, budget.ends_s)


def _order_of(budget: _Budget) -> tuple[int, str]:
    return budget.place
