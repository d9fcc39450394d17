"""Endpoint of a worker for lines of batches, for this host's runner alone.

`POST /batch-lines/v1/chat/completions` with a ticket is that request, asked by the ticket's key. To
anybody else the path does not exist. Everything behind it is what serves the public path, with
another planner, and with the prompt taken for read after its predicted time: an answer in one piece
has no first token to see, and live requests must not find a line's prompt waiting all the while.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace

from gateway.auth import token_of
from gateway.batches.authority import LineTicket, TicketAuthority
from gateway.batches.inputlines import ENDPOINTS
from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.admission import BudgetAdmission
from gateway.request.client_response import CLIENT_GONE, JSON
from gateway.request.inference_api import InferenceApi, Message, Receive, SendMessage
from gateway.request.load_tracker import LoadReservation, LoadTracker
from gateway.request.plan import AttemptPlan, RoutingPlan
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.identity.keys import BATCH_TAG, Identity, KeyRing
from ledger.journals.records import Hold
from router.idle import TightestSlo, reason_to_preempt
from router.types import EngineState

PREFIX = "/batch-lines"


class TicketKeys:
    """Stands in for keys: the identity is the ticket's, tagged with its batch."""

    def __init__(self, keys: KeyRing, ticket: ContextVar[LineTicket]) -> None:
        self._keys = keys
        self._ticket = ticket

    def recall(self, token: str, now_us: int) -> Identity | None:
        """Nothing is remembered: each try asks for its key anew."""
        del token, now_us
        return None

    async def lookup(self, token: str, now_us: int) -> Identity | None:
        del token  # the entrance has read it
        ticket = self._ticket.get()
        identity = await self._keys.delegated(ticket.key_id, now_us)
        if identity is None:
            return None
        tags = tuple(tag for tag in identity.tags if tag[0] != BATCH_TAG)
        return replace(identity, tags=(*tags, (BATCH_TAG, ticket.batch_id)))


class LineLoadTracker(LoadTracker):
    """A line's prompt is taken for read when it is predicted to be.

    Knows which engine each line is at.
    """

    def __init__(self, board: SharedLoadTable, worker: int) -> None:
        super().__init__(board, worker)
        self._engines: dict[str, int] = {}
        self._placed = asyncio.Event()  # while any line is at an engine, as far as is known

    async def wait_for_line(self) -> None:
        """Return once a line is at an engine."""
        await self._placed.wait()

    def by_engine(self, names: Collection[str]) -> dict[int, list[str]]:
        """These requests by the engine's row that they were sent to; the others are forgotten."""
        self._engines = {name: row for name, row in self._engines.items() if name in names}
        if not self._engines:
            self._placed.clear()
        found: dict[int, list[str]] = {}
        for name, row in self._engines.items():
            found.setdefault(row, []).append(name)
        return found

    def reserve(self, plan: RoutingPlan, step: AttemptPlan, now_s: float) -> LoadReservation | None:
        flight, ttft_ms = super().reserve(plan, step, now_s), step.verdict.ttft_ms
        if flight is not None:
            self._engines[plan.request_id] = step.frozen.target.row
            self._placed.set()
        if flight is not None and ttft_ms is not None:
            ttft_s = ttft_ms / 1e3
            asyncio.get_running_loop().call_later(ttft_s, flight.first_token, now_s + ttft_s)
        return flight


class UncountedRequests:
    """Lines have no part in the count of clients' requests."""

    working = 0


class LineEndpoint:
    """`hot` answers what is let in, `onward` what only wants to know where it could go."""

    def __init__(
        self,
        hot: InferenceApi,
        onward: InferenceApi,
        authority: TicketAuthority,
        ticket: ContextVar[LineTicket],
        clock: Clock,
    ) -> None:
        self.hot = hot
        self.onward = onward
        self._authority = authority
        self._ticket = ticket
        self._clock = clock

    def ticket_of(self, scope: Message) -> LineTicket | None:
        """The ticket of a request from this host; `None`: to who asks, there is nothing here."""
        path = scope["path"]
        if not path.startswith(PREFIX) or path[len(PREFIX) :] not in ENDPOINTS:
            return None
        if not _from_here(scope):
            return None
        try:
            token = token_of(scope["headers"])
        except RequestError:
            return None
        return self._authority.read(token, now_us=self._clock.wall_us())

    async def __call__(
        self, ticket: LineTicket, scope: Message, receive: Receive, send: SendMessage
    ) -> None:
        self._ticket.set(ticket)  # in this request's own context
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        # Without what the connection offers beside `send`: all of the answer must pass here.
        inside = {**scope, "path": scope["path"][len(PREFIX) :], "extensions": {}}
        await (self.onward if ticket.onward else self.hot)(inside, receive, noted)
        if not begun:  # it made room, or nobody is there to hear this
            await _send_preempted(ticket, send)


async def _send_preempted(ticket: LineTicket, send: SendMessage) -> None:
    error = RequestError("made_room", "The line made room for live requests.")
    headers = [JSON, (b"x-request-id", ticket.request_id.encode())]
    start = {"type": "http.response.start", "status": error.row.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": error_body(error)})


def request_ids(ticket: ContextVar[LineTicket]) -> Callable[[], str]:
    """Every try of a line brings its own id."""
    return lambda: ticket.get().request_id


def _from_here(scope: Message) -> bool:
    """Loopback, or an address of this host calling itself."""
    client, server = _host(scope.get("client")), _host(scope.get("server"))
    return client.startswith("127.") or client == "::1" or (client != "" and client == server)


def _host(address: Iterable[object] | None) -> str:
    return "" if address is None else str(next(iter(address), ""))


RETRY_AFTER_S = 1.0


class LineAdmission(BudgetAdmission):
    """Budgets for lines: only money that is spent refuses one; money that is held frees itself.

    A batch's own lines hold their bounds beside each other, and so fill a budget that has room for
    all of them one after the other. A line without room among the holds waits, as one without an
    engine.
    """

    async def hold(
        self, attempt_id: str, scopes: Sequence[str], bound_pusd: int
    ) -> tuple[Hold, ...] | BudgetRefusal:
        """The refusal where what is left unspent is less than the bound; else raises `not_idle`."""
        held = await super().hold(attempt_id, scopes, bound_pusd)
        if not isinstance(held, BudgetRefusal) or not held.is_for_holds(bound_pusd):
            return held
        message = f"Budget `{held.scope}` has room for this line once others have ended."
        raise RequestError("not_idle", message, retry_after_s=RETRY_AFTER_S)


LOOK_S = 0.1


class LinePreemptor:
    """On an engine that comes near what live requests are promised, the newest line ends.

    One at a time and engine, ten times a second, until there is room again. What the line has used
    is billed, and it is tried again when an engine is idle. `state` freezes the engine of a row;
    `promised` is what live requests have there.
    """

    def __init__(
        self,
        hot: InferenceApi,
        flights: LineLoadTracker,
        state: Callable[[int], EngineState],
        promised: Callable[[int], TightestSlo],
    ) -> None:
        self._hot = hot
        self._flights = flights
        self._state = state
        self._promised = promised

    async def run(self) -> None:
        """Until cancelled. While no line is at an engine, this task sleeps."""
        while True:
            await self._flights.wait_for_line()
            await asyncio.sleep(LOOK_S)
            self.preempt_lines()

    def preempt_lines(self) -> int:
        """End running lines of batches; return how many."""
        open_lines = {reply.request_id: reply for reply in self._hot.open_replies()}
        ended = 0
        for row, names in self._flights.by_engine(open_lines).items():
            if names and reason_to_preempt(self._state(row), self._promised(row)):
                newest = max(
                    (open_lines[name] for name in names), key=lambda response: response.opened_s
                )
                newest.end(CLIENT_GONE)
                ended += 1
        return ended
