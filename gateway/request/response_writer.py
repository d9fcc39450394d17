"""Relay of a target's answer to the client, its settle, and then the last byte.

Content is sent at once. Finish, usage and `[DONE]` are held back until the settle is durable. So a
client that has seen an answer's end has a row in the ledger, also after a power loss.
"""

import asyncio
import math
from collections.abc import Callable
from functools import partial

from backends.answers import OCTETS, TEXTS, AnswerUsage, is_sound, media_type
from backends.base import Exchange
from backends.charged_errors import (
    FILTERED,
    charge_status,
    is_content_refusal,
    is_filtered,
    refusal_usage,
)
from backends.errors import (
    BackendError,
    ContentFiltered,
    ContextTooLong,
    HeadTimeout,
    IdleTimeout,
    ModelNotServed,
    RequestDeclined,
    UpstreamRejected,
    WrongAddress,
)
from backends.exchange import drain_exchange, pour_exchange, read_all
from backends.refusal import FORBIDDEN, is_about_model, is_too_long, openai_refusal, refuses_account
from gateway.clock import Clock
from gateway.errors import ErrorFault, fault_header
from gateway.http.connection import Header
from gateway.kinds import KINDS
from gateway.kinds.outcome import REFUSED, AttemptOutcome
from gateway.kinds.relay import ByteRelay, parse_answer
from gateway.request.attempt import Attempt
from gateway.request.client_response import JSON, NO_CACHE, STREAM, STREAM_HEAD, ClientResponse
from gateway.request.ignored_names import IGNORED, listed_names
from gateway.request.metering import UsageMeter
from router.explain import short
from router.stages import StageCause

ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
EVENTS = "text/event-stream"
REFUSAL_LIMIT_BYTES = 1024 * 1024
LARGE_BYTES = 64 * 1024  # converting more would delay streams: a thread does it
NOT_FOUND = 404
NO_PATH = (NOT_FOUND, 405)
CONTENT = b"x-breakeven-content"


class ResponseWriter:
    def __init__(self, metering: UsageMeter, clock: Clock, *, first_s: float = math.inf) -> None:
        """Create the writer; `first_s` limits the wait for the first token of a stream.

        It applies to streams that send other bytes, such as comments, in the meantime.
        """
        self._metering = metering
        self._first_s = first_s
        self._clock = clock

    async def answer(self, attempt: Attempt, exchange: Exchange, reply: ClientResponse) -> None:
        """Relay whatever the target answered. Raises a `BackendError` when the answer breaks."""
        read = KINDS[attempt.plan.asked.kind].read_answer
        if exchange.status >= 400:
            body = await read_all(exchange, REFUSAL_LIMIT_BYTES)
            await self._relay_refusal(attempt, exchange.status, body, reply)
        elif read is not None and not _flows(attempt, exchange):
            await self._relay_whole(attempt, exchange, reply, read)
        elif attempt.plan.asked.stream or read is not None:
            await self._stream(attempt, exchange, reply)
        else:
            await self._whole(attempt, exchange, reply)

    async def decline(
        self, attempt: Attempt, error: RequestDeclined, reply: ClientResponse, *, final: bool = True
    ) -> None:
        """Answer with a refusal from the body of a 200, as if it had that status.

        Raises the error if it has no status, an answer has begun, or it is not `final`.
        """
        if reply.started or error.status is None or not final:
            raise error
        await self._relay_refusal(attempt, error.status, error.body, reply)

    async def _stream(self, attempt: Attempt, exchange: Exchange, reply: ClientResponse) -> None:
        asked, head = attempt.plan.asked, STREAM_HEAD
        flow = KINDS[asked.kind].flow
        if flow is not None and is_sound(found := media_type(exchange.headers)):
            relay = flow(asked)
            head = ((b"content-type", (found or OCTETS).encode()), NO_CACHE)
            reply.is_file = True
        else:
            relay = KINDS[asked.kind].relay(asked, attempt.own)
        attempt.relay = relay
        headers = _headers(attempt, *head)
        first_s = _patience_s(attempt, self._first_s)
        stream = StreamSink(attempt, relay, reply, self._clock.now_s, first_s)
        while not await pour_exchange(exchange, stream):
            if stream.held:
                if not reply.started:
                    await reply.start(200, headers)
                    attempt.start_answer()
                await reply.body(stream.held, more=True)
            if stream.error is not None:
                if relay.error is not None and relay.content_events:  # output was generated
                    await drain_exchange(exchange, relay.take_trailing)
                raise stream.error
            if relay.complete:  # an upstream that stays open after `[DONE]` may add its usage
                await drain_exchange(exchange, relay.take_trailing)
                break
        rest = stream.kept + relay.finish() if stream.kept else relay.finish()
        outcome = AttemptOutcome(
            "finished",
            200,
            usage=relay.usage,
            usage_final=relay.usage_final,
            finish_reason=relay.finish_reason,
            tier=relay.tier,
            said_bytes=relay.said_bytes,
            shown=relay.shown,
            earlier_usage=relay.earlier_usage,
            most_said_bytes=relay.most_said_bytes,
            spoken=relay.spoken,
            usage_behind=relay.usage_behind,
            unnamed_bytes=relay.unnamed_bytes,
            usage_stands=relay.usage_stands,
        )
        if reply.ended_by is not None:
            await self._metering.settle(attempt, outcome.without_client())
            return
        await self._metering.settle(attempt, outcome)
        _check_filter(attempt, reply, relay.finish_reason, said=relay.content_events)
        reply.set_usage(attempt.booked, attempt.plan)
        if not reply.started:
            await reply.start(200, headers)
        await reply.body(rest, more=False)

    async def _whole(self, attempt: Attempt, exchange: Exchange, reply: ClientResponse) -> None:
        body = await read_all(exchange, ANSWER_LIMIT_BYTES, check=partial(_check_wanted, reply))
        said = parse_answer(body)
        attempt.observe_content(self._clock.now_s(), 1)
        outcome = AttemptOutcome(
            "finished",
            200,
            usage=said.usage,
            usage_final=True,
            finish_reason=said.finish_reason,
            tier=said.tier,
            answer=body,
        )
        if reply.ended_by is not None:
            await self._metering.settle(attempt, outcome.without_client())
            return
        cost = await self._metering.settle(attempt, outcome)
        _check_filter(attempt, reply, said.finish_reason)
        headers = _headers(attempt, JSON) + _cost_headers(attempt, cost)
        asked = attempt.plan.asked
        spec = KINDS[asked.kind]
        if spec.as_asked is not None:
            form = partial(spec.as_asked, asked, body)
            body = await asyncio.to_thread(form) if len(body) > LARGE_BYTES else form()
        if spec.tell_usage is not None and said.usage is None and attempt.booked is not None:
            body = spec.tell_usage(body, attempt.booked)
        reply.set_usage(attempt.booked, attempt.plan)
        await reply.send_whole(exchange.status, headers, body)

    async def _relay_whole(
        self,
        attempt: Attempt,
        exchange: Exchange,
        reply: ClientResponse,
        read: Callable[[bytes, str], AnswerUsage],
    ) -> None:
        """Relay a ranking or transcript in one piece, unchanged and with its content type."""
        body = await read_all(exchange, ANSWER_LIMIT_BYTES, check=partial(_check_wanted, reply))
        media = media_type(exchange.headers)
        found = read(body, media)
        attempt.observe_content(self._clock.now_s(), 1)
        outcome = AttemptOutcome(
            "finished", 200, usage=found.usage, usage_final=True, said_bytes=found.said_bytes
        )
        if reply.ended_by is not None:
            await self._metering.settle(attempt, outcome.without_client())
            return
        cost = await self._metering.settle(attempt, outcome)
        content_type = JSON
        if media in TEXTS:  # only these types: a browser must not run what a target sends
            content_type = (b"content-type", media.encode() + b"; charset=utf-8")
        asked = attempt.plan.asked
        as_events = KINDS[asked.kind].as_events if asked.stream else None
        if as_events is not None:
            content_type, body = STREAM, as_events(body)
        headers = _headers(attempt, content_type) + _cost_headers(attempt, cost)
        await reply.send_whole(exchange.status, headers, body)

    async def _relay_refusal(
        self, attempt: Attempt, status: int, body: bytes, reply: ClientResponse
    ) -> None:
        """Relay the target's 4xx as the answer. It is free, since nothing was generated.

        It is charged if its body counts output or reports that a filter read the prompt. A prompt
        too long for this target goes to the next one, and so does an error of the gateway's own
        configuration.
        """
        failure = _refusal_failure(attempt, status, body)
        if failure is not None and not isinstance(failure, ContentFiltered):
            raise charge_status(failure, body)
        usage = refusal_usage(body)
        read = KINDS[attempt.plan.asked.kind].units is None and is_filtered(body)
        outcome = AttemptOutcome(
            "rejected", status, usage=usage, usage_final=usage is not None, error=REFUSED,
            billable=usage is not None or read,
        )  # fmt: skip
        await self._metering.settle(attempt, outcome)
        if failure is not None:
            raise failure
        secrets = attempt.step.frozen.target.backend.secrets
        told = openai_refusal(body, status, secrets)
        headers = _headers(attempt, JSON, fault_header(ErrorFault.REQUEST))
        if status == FORBIDDEN:  # a filter's: the caller's own key is right
            status = 400
        await reply.send_whole(status, headers, told)


def _refusal_failure(attempt: Attempt, status: int, body: bytes) -> BackendError | None:
    """Return what a 4xx is that another target may answer, or our operator mend."""
    if refuses_account(status, body):
        # Its body may quote our credentials.
        return UpstreamRejected("the target refused our credentials", status=status)
    if status in NO_PATH and not is_about_model(body):
        return WrongAddress("the target has no such path", status=status)
    leads = attempt.leads_on if attempt.own else attempt.leads_to_stage
    if status == NOT_FOUND and leads(StageCause.FAILURE):
        return ModelNotServed("the target is without that model or adapter", status=NOT_FOUND)
    if attempt.leads_on(StageCause.CONTEXT) and is_too_long(body, status):
        return ContextTooLong("the prompt exceeds the target's context", status=status)
    if attempt.leads_to_stage(StageCause.CONTENT_POLICY) and is_content_refusal(body):
        return ContentFiltered("its content filter refused the request", status=status)
    return None


def _check_filter(
    attempt: Attempt, reply: ClientResponse, finish_reason: str | None, said: int = 0
) -> None:
    """Raise `ContentFiltered` for an answer that a filter removed, if a later stage is due.

    `said` is the number of content events relayed.
    """
    if finish_reason != FILTERED or reply.started or said or attempt.plan.request.n > 1:
        return
    if attempt.leads_to_stage(StageCause.CONTENT_POLICY):
        raise ContentFiltered("its content filter ended the answer")


def _patience_s(attempt: Attempt, usual_s: float) -> float:
    """Return the seconds a stream may wait for its first token: the model's, else the usual."""
    own = attempt.plan.route.deadlines
    return usual_s if own is None or own.stream.head_s is None else own.stream.head_s


class StreamSink:
    """The receiver of a streamed answer's pieces: a `backends.base.Sink`.

    It stops the flow where something must be awaited: the head of the answer, a client that reads
    slowly (`held` is left to send), the end, and an error.
    """

    __slots__ = (
        "_attempt", "_first_s", "_keeps", "_now_s", "_relay", "_reply", "error", "held", "kept",
    )  # fmt: skip

    def __init__(
        self,
        attempt: Attempt,
        relay: ByteRelay,
        reply: ClientResponse,
        now_s: Callable[[], float],
        first_s: float,
    ) -> None:
        """Create the sink; `first_s` is that of `ResponseWriter`."""
        self.error: BackendError | None = None
        self.held = b""
        self._attempt = attempt
        self._relay = relay
        self._reply = reply
        self._now_s = now_s
        self._first_s = first_s
        # Before the first content, a content filter may end the answer, or the prompt's KV turn out
        # to be gone after the answer's role. Then another target can still begin.
        self._keeps = attempt.prefill is not None or attempt.leads_to_stage(
            StageCause.CONTENT_POLICY
        )
        self.kept = b""

    def __call__(self, piece: bytes) -> bool:
        relay, attempt = self._relay, self._attempt
        try:
            out = relay.feed(piece)
        except BackendError as error:
            return self._fail(error)
        if relay.content_events > attempt.events:
            attempt.observe_content(self._now_s(), relay.content_events)
        elif attempt.first_token_s is None and self._is_late():
            return self._fail(HeadTimeout("no token in time"))
        reply = self._reply
        if self._keeps:
            out = self._keep(out)
        self.held = reply.push(out) if out and reply.ended_by is None else b""
        self.error = relay.error  # there may be no further piece to report it
        return not self.held and not relay.complete and self.error is None

    def _keep(self, out: bytes) -> bytes:
        """Return the bytes to send: none before the first content, then all."""
        self.kept += out
        if not self._relay.content_events:
            return b""
        self._keeps = False
        out, self.kept = self.kept, b""
        return out

    def _fail(self, error: BackendError) -> bool:
        self.error, self.held = error, b""
        return False

    def _is_late(self) -> bool:
        """Return whether the first token is late; keep-alive comments do not count as an answer."""
        return self._now_s() - self._attempt.dispatched_s > self._first_s


def _check_wanted(reply: ClientResponse, size: int) -> None:
    """Raise `IdleTimeout` for an answer without a client that is too large to keep."""
    if reply.ended_by is not None and reply.keeps is not None and not reply.keeps(size):
        raise IdleTimeout(f"nobody waits for an answer of {size} bytes")


def _flows(attempt: Attempt, exchange: Exchange) -> bool:
    """Return whether the answer is a stream; some targets answer in one piece regardless.

    A sound file is always relayed as a stream.
    """
    media = media_type(exchange.headers)
    if attempt.plan.asked.stream and media == EVENTS:
        return True
    return KINDS[attempt.plan.asked.kind].flow is not None and is_sound(media)


def _cost_headers(attempt: Attempt, cost_pusd: int | None) -> list[Header]:
    """Return the headers with the answer's cost, and with `estimated` for unreported tokens."""
    headers = [] if cost_pusd is None else [(b"x-breakeven-cost-usd", _usd(cost_pusd))]
    if attempt.record is not None and attempt.record.basis in ("estimated", "bound"):
        headers.append((b"x-breakeven-tokens", b"estimated"))
    return headers


def _headers(attempt: Attempt, *first: Header) -> list[Header]:
    plan, cap = attempt.plan, attempt.step.frozen.candidate.output_cap
    decision = short(plan.decision) + ("" if cap is None else f" cap={cap}")
    if plan.route.is_staged:
        decision += f" stage={plan.route.stage}"
    ignored, content = attempt.ignored_members, plan.asked.content
    retirement = plan.route.retirement
    return [
        *first,
        *(() if retirement is None else retirement.headers),
        *([(IGNORED, listed_names(ignored))] if ignored else ()),
        *([(CONTENT, content.row.encode())] if content is not None else ()),
        (b"x-breakeven-backend", attempt.step.frozen.target.name.encode("latin-1", "replace")),
        (b"x-breakeven-policy", plan.policy.name.encode("latin-1", "replace")),
        (b"x-breakeven-decision", decision.encode("latin-1", "replace")),
    ]


def _usd(cost_pusd: int) -> bytes:
    """Return exact dollars with all twelve decimal places of a pico-USD."""
    whole, fraction = divmod(cost_pusd, 10**12)
    return f"{whole}.{fraction:012d}".encode()
