"""Whatever comes when, a worker's slices carry what it was lent, and the holds of its attempts.

The desk is a model here, and time stands still until a schedule moves it, so that an answer, a
timeout, a client that leaves and the end of a day may fall together.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger.budgets import broker_protocol as wire
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.budgets.client import ANSWER_TIMEOUT_S, BrokerUnavailable, BudgetClient
from ledger.journals.records import Hold

DAY_S, HOUR_S = 86_400, 3600
NOW_S = 1_780_000_000  # 2026-05-28, 20:26
MONTHS = (1_777_593_600, 1_780_272_000, 1_782_864_000)  # May to July
LIMIT_PUSD = 1000
TERMS = (("team:a", "day", True), ("key:k", "month", True), ("user:u", "day", False))
LINES = tuple(
    wire.BudgetTerms(f"{scope}@{period}", scope, period, "UTC", hard, str(LIMIT_PUSD))
    for scope, period, hard in TERMS
)
SCOPES = st.sampled_from([("team:a",), ("key:k",), ("team:a", "key:k", "user:u"), ("user:u",)])


class ModelDesk:
    """Lends what the limit leaves, in the order of the requests; written to as a socket is."""

    def __init__(self) -> None:
        self.lent: Counter[wire.AccountKey] = Counter()
        self.asked: list[wire.LoanRequest] = []
        self.recalled: list[int | None] = []

    def write(self, data: bytes) -> None:
        request = wire.REQUESTS.decode(data[4:])
        assert not isinstance(request, wire.ClientHello)
        for back in request.returns:
            assert back.pusd > 0
            self.lent[back.key] -= back.pusd
        if isinstance(request, wire.LoanRequest):
            assert all(ask.pusd > 0 for ask in request.asks)
            self.asked.append(request)
        else:
            self.recalled.append(request.recall)

    def answer(self, more: int, *, small: bool, away: bool) -> wire.Answer:
        """Answer the request that waits longest; `more` is lent beyond what it asks for."""
        request = self.asked.pop(0)
        rooms = {ask.key: LIMIT_PUSD - self.lent[ask.key] for ask in request.asks}
        short = [ask.key for ask in request.asks if ask.pusd > rooms[ask.key]]
        if short or away:
            name, room = (short or list(rooms))[0][0], rooms[short[0]] if short else 0
            return wire.LoanRefusal(request.number, name, str(LIMIT_PUSD), str(room), away=away)
        loans = [(ask.key, min(ask.pusd + more, rooms[ask.key])) for ask in request.asks]
        for key, loan in loans:
            self.lent[key] += loan
        amounts = tuple(wire.amount(key, loan) for key, loan in loans)
        return wire.Loan(request.number, amounts, tuple(rooms) if small else ())


class Schedule:
    """One worker; `held` are the holds of attempts that have them and did not end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.desk = loop, ModelDesk()
        self.now_s = NOW_S
        self.client = BudgetClient(Path("desk"), worker="w", now_us=lambda: self.now_s * 10**6)
        self.client._writer = self.desk  # type: ignore[assignment]  # all that is called of it
        self.client._receive(wire.BudgetUpdate((), LINES))
        self.held: dict[str, tuple[Hold, ...]] = {}
        self.spent: Counter[wire.AccountKey] = Counter()
        self.tasks: list[asyncio.Task[None]] = []
        self.ended: set[wire.AccountKey] = set()  # slices of windows that had ended at a turn
        self.passed_s = 0.0
        self.errors: list[Exception] = []
        loop.time = lambda: self.passed_s  # type: ignore[method-assign]

    @property
    def current(self) -> tuple[wire.AccountKey, ...]:
        month_s = max(start_s for start_s in MONTHS if start_s <= self.now_s)
        return ("team:a@day", self.now_s - self.now_s % DAY_S), ("key:k@month", month_s)

    def turn(self, seconds: int) -> None:
        self.now_s += seconds
        self.client.edition()
        before, slices = self.ended, self.client._slices
        self.ended = slices.keys() - {*self.current}
        kept = {key for key in self.ended if not slices[key].held_pusd}
        assert kept.isdisjoint(before), "of windows that ended before the last turn nothing is kept"
        just_ended = self.ended - before
        assert not self.client.connected or not any(slices[key].free_pusd for key in just_ended)

    def start(self, scopes: tuple[str, ...], bound_pusd: int) -> None:
        name = f"r{len(self.tasks)}.1"
        self.tasks.append(self.loop.create_task(self._hold(name, scopes, bound_pusd)))

    async def _hold(self, name: str, scopes: tuple[str, ...], bound_pusd: int) -> None:
        with suppress(BrokerUnavailable):
            holds = await self.client.hold(name, scopes, bound_pusd)
            if isinstance(holds, BudgetRefusal):
                assert holds.limit_pusd == LIMIT_PUSD
                assert holds.room_pusd < bound_pusd
                return
            amounts = [bound_pusd if hard else 0 for scope, _, hard in TERMS if scope in scopes]
            assert sorted(hold.amount_pusd for hold in holds) == sorted(amounts)
            self.held[name] = holds

    def answer(self, more: int, *, small: bool, away: bool) -> None:
        if self.desk.asked:
            self.client._receive(self.desk.answer(more, small=small, away=away))

    def end(self, place: int, part: float) -> None:
        """An attempt ends at a part of its bound; told twice, which changes nothing."""
        if not self.held:
            return
        name = sorted(self.held)[place % len(self.held)]
        holds = self.held.pop(name)
        actual = int(part * max(hold.amount_pusd for hold in holds))
        for hold in holds:
            if hold.amount_pusd:
                self.spent[hold.scope, hold.window] += actual
        self.client.release(name, actual)
        self.client.release(name, actual + 1)

    def leave(self, place: int) -> None:
        waiting = [task for task in self.tasks if not task.done()]
        if waiting:
            waiting[place % len(waiting)].cancel()

    def recall(self, number: int) -> None:
        if not self.client.connected:
            return
        self.client._receive(wire.LoanRecall(number, self.current))
        assert self.desk.recalled[-1] == number

    def lose(self) -> None:
        """The desk goes away, and what it had not answered is forgotten."""
        self.client._writer = None
        self.client._fail_pending()
        self.desk.asked.clear()

    def find(self) -> None:
        """A desk is there again, and is told what was lent in all."""
        if not self.client.connected:
            self.client._writer = self.desk  # type: ignore[assignment]  # stands in for it
            pieces = self.client._slices
            self.desk.lent = Counter({key: pieces[key].granted_pusd for key in pieces})

    async def play(
        self, instants: list[tuple[float, list[Callable[["Schedule"], None]]]], *, prompt: bool
    ) -> None:
        """`prompt`: the desk answers whatever an instant left unanswered."""
        for passed_s, actions in instants:
            before_s = self.passed_s
            self.passed_s += passed_s
            for action in actions:  # before what is due by now, in the same turn of the loop
                self.loop.call_at(before_s, self._act, action)
            await self._settle_down()
            if self.errors:
                raise self.errors[0]
            while prompt and self.desk.asked:
                self.answer(1, small=False, away=False)
                await self._settle_down()
            self.check()
        self.find()
        self.passed_s += 2 * ANSWER_TIMEOUT_S
        await self._settle_down()
        assert all(task.done() for task in self.tasks)
        for task in self.tasks:
            if not task.cancelled():
                task.result()
        while self.desk.asked:  # for attempts that gave up
            self.answer(5, small=False, away=False)
        self.check(is_quiet=True)
        for name in sorted(self.held):
            self.client.release(name, 0)
        small = self.client._small & self.client._slices.keys() & {*self.current}
        assert not any(self.client._slices[key].free_pusd for key in small), "others may need it"
        self.recall(99)
        for key in self.current:
            assert self.desk.lent[key] == self.spent[key]

    async def aclose(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def _act(self, action: Callable[["Schedule"], None]) -> None:
        try:
            action(self)
        except Exception as error:  # noqa: BLE001  (the loop would only log it)
            self.errors.append(error)

    async def _settle_down(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    def check(self, *, is_quiet: bool = False) -> None:
        """Both sides count the same; quiet, nothing is held but for attempts that have holds."""
        amounts: Counter[wire.AccountKey] = Counter()
        for hold in (hold for holds in self.held.values() for hold in holds if hold.amount_pusd):
            amounts[hold.scope, hold.window] += hold.amount_pusd
        for key in {*amounts, *self.client._slices, *self.current}:
            granted, held, spent = self.client._slices.get(key, (0, 0, 0))
            amount = amounts[key]
            assert held == amount or (held > amount and not is_quiet)
            assert self.desk.lent[key] <= LIMIT_PUSD
            if key in self.current:  # of others what is free may be forgotten on this side
                assert spent == self.spent[key]
            if self.client.connected:
                assert granted == self.desk.lent[key] or (
                    granted < self.desk.lent[key] and key not in self.current
                )


STARTS = st.builds(
    lambda scopes, bound: lambda played: played.start(scopes, bound), SCOPES, st.integers(1, 400)
)
ANSWERS = st.builds(
    lambda more, small, away: lambda played: played.answer(more, small=small, away=away),
    st.sampled_from([0, 1, 300]), st.booleans(), st.sampled_from([False, False, False, True]),
)  # fmt: skip
ENDS = st.builds(
    lambda place, part: lambda played: played.end(place, part),
    st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0]),
)  # fmt: skip
TURNS = st.sampled_from([2 * HOUR_S, DAY_S]).map(
    lambda seconds: lambda played: played.turn(seconds)
)
ACTIONS = st.one_of(
    STARTS, STARTS, STARTS, ANSWERS, ANSWERS, ENDS, ENDS, ENDS, TURNS, TURNS,
    st.builds(lambda place: lambda played: played.leave(place), st.integers(0, 3)),
    st.integers(1, 9).map(lambda number: lambda played: played.recall(number)),
    st.just(Schedule.lose), st.just(Schedule.find), st.just(Schedule.find),
)  # fmt: skip
INSTANTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, ANSWER_TIMEOUT_S + 1]),
        st.lists(ACTIONS, min_size=1, max_size=3),
    ),
    min_size=3,
    max_size=12,
)


def started(*scopes: str) -> Callable[[Schedule], None]:
    return lambda played: played.start(scopes, 200)


def answered(played: Schedule, *, away: bool = False) -> None:
    played.answer(300, small=True, away=away)


def left(played: Schedule) -> None:
    played.leave(0)


# A client leaves in the turn in which its loan arrives; what a small budget was held for in vain.
CROSSED = [(0.0, [started("team:a")]), (0.0, [answered, left])]
IN_VAIN = [
    (0.0, [started("team:a")]),
    (0.0, [answered]),
    (0.0, [started("team:a", "key:k")]),
    (0.0, [lambda played: played.end(0, 0.5), lambda played: answered(played, away=True)]),
]


@example(CROSSED, False)
@example(IN_VAIN, False)
@settings(max_examples=4 * settings.default.max_examples, deadline=None)
@given(INSTANTS, st.sampled_from([True, True, False]))
def test_slices_carry_loans_and_holds_whatever_comes_when(instants, prompt) -> None:
    loop = asyncio.SelectorEventLoop()
    schedule = Schedule(loop)
    try:
        loop.run_until_complete(schedule.play(instants, prompt=prompt))
    finally:
        loop.run_until_complete(schedule.aclose())
        loop.close()
