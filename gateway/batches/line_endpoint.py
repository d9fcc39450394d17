"""Endpoint of a worker for batch lines, open only to this host's runner.

`POST /batch-lines/v1/chat/completions` with a ticket serves that request with the ticket's key; the
path answers 404 to others. The public path's code serves it, with another planner. A line's prompt
counts as read after its predicted prefill time, because an unstreamed answer shows no first token,
and live requests should not see the prompt as queued all that time.
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
    """Key lookup for lines: the identity of the ticket's key, tagged with its batch."""

    def __init__(self, keys: KeyRing, ticket: ContextVar[LineTicket]) -> None:
        self._keys = keys
        self._ticket = ticket

    def recall(self, token: str, now_us: int) -> Identity | None:
        """Return `None`: each try looks its key up again."""
        del token, now_us
        return None

    async def lookup(self, token: str, now_us: int) -> Identity | None:
        del token  # the endpoint has read it
        ticket = self._ticket.get()
        identity = await self._keys.delegated(ticket.key_id, now_us)
        if identity is None:
            return None
        tags = tuple(tag for tag in identity.tags if tag[0] != BATCH_TAG)
        return replace(identity, tags=(*tags, (BATCH_TAG, ticket.batch_id)))


class LineLoadTracker(LoadTracker):
    """Load tracker that counts a line's prompt as read after its predicted TTFT.

    It also records the engine of each line.
    """

    def __init__(self, board: SharedLoadTable, worker: int) -> None:
        super().__init__(board, worker)
        self._engines: dict[str, int] = {}
        self._placed = asyncio.Event()  # set while a line may be running on an engine

    async def wait_for_line(self) -> None:
        """Wait until a line runs on an engine."""
        await self._placed.wait()

    def by_engine(self, names: Collection[str]) -> dict[int, list[str]]:
        """Return these requests by their engine's row, and forget all others."""
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
    """In-flight counter that stays 0, because lines do not count as clients' requests."""

    working = 0


class LineEndpoint:
    """ASGI endpoint for lines: `hot` answers them, `onward` only plans them."""

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
        """Return the ticket of a request from this host; `None` for any other request."""
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
        self._ticket.set(ticket)  # a context variable, local to this request
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        # Without the connection's shortcuts: the whole answer must pass `noted`.
        inside = {**scope, "path": scope["path"][len(PREFIX) :], "extensions": {}}
        await (self.onward if ticket.onward else self.hot)(inside, receive, noted)
        if not begun:  # the line was preempted, or the runner disconnected
            await _send_preempted(ticket, send)


async def _send_preempted(ticket: LineTicket, send: SendMessage) -> None:
    error = RequestError("made_room", "The line made room for live requests.")
    headers = [JSON, (b"x-request-id", ticket.request_id.encode())]
    start = {"type": "http.response.start", "status": error.row.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": error_body(error)})


def request_ids(ticket: ContextVar[LineTicket]) -> Callable[[], str]:
    """Return a function that returns the request id of the current ticket."""
    return lambda: ticket.get().request_id


def _from_here(scope: Message) -> bool:
    """Return whether the client is on loopback or on this host's own address."""
    client, server = _host(scope.get("client")), _host(scope.get("server"))
    return client.startswith("127.") or client == "::1" or (client != "" and client == server)


def _host(address: Iterable[object] | None) -> str:
    return "" if address is None else str(next(iter(address), ""))


RETRY_AFTER_S = 1.0


class LineAdmission(BudgetAdmission):
    """Budget admission for lines: spent money rejects a line, held money only delays it.

    The open lines of a batch hold their cost bounds at the same time, which may fill a budget that
    has room for all of them in sequence. A line without room beside these holds waits.
    """

    async def hold(
        self, attempt_id: str, scopes: Sequence[str], bound_pusd: int
    ) -> tuple[Hold, ...] | BudgetRefusal:
        """Return the holds, or the refusal if the unspent budget is below the bound.

        Raises `RequestError` (`not_idle`) if the budget has room once other holds end.
        """
        held = await super().hold(attempt_id, scopes, bound_pusd)
        if not isinstance(held, BudgetRefusal) or not held.is_for_holds(bound_pusd):
            return held
        message = f"Budget `{held.scope}` has room for this line once others have ended."
        raise RequestError("not_idle", message, retry_after_s=RETRY_AFTER_S)


LOOK_S = 0.1


class LinePreemptor:
    """Preemption of lines on engines that come near the latency promised to live requests.

    Ten times a second, the newest line on each such engine ends, until there is room. Its usage is
    billed, and the line is retried on an idle engine. `state` returns the state of a row's engine,
    `promised` the SLO of live requests there.
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
        """Preempt lines until cancelled; sleep while no line runs on an engine."""
        while True:
            await self._flights.wait_for_line()
            await asyncio.sleep(LOOK_S)
            self.preempt_lines()

    def preempt_lines(self) -> int:
        """End the newest line of each engine without room; return how many were ended."""
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
