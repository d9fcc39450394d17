"""The dispatch loop: hold, dispatch, relay, settle, and try the next candidate on failure.

Another candidate is tried only while no byte has reached the client. Every try is an attempt with
its own hold and two records. However it ends (answer, failure, disconnect, deadline), its reserved
load and its hold are released and its row is settled exactly once.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from backends.base import Call, Deadlines, Exchange
from backends.cost_headers import COST_HEADER
from backends.errors import (
    BackendError,
    DispatchSuperseded,
    HeadTimeout,
    IdleTimeout,
    RequestDeclined,
    UpstreamOverloaded,
)
from backends.ratelimit import RateLimitHeaders, parse_rate_limit
from gateway.errors import RequestError, drop_traceback
from gateway.fleet.fleet import Target
from gateway.fleet.model_backoff import LIMITED
from gateway.fleet.target_stats import TargetStats
from gateway.kinds import KINDS
from gateway.kinds.error_events import error_event
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt, CandidateQueue
from gateway.request.background_reads import BackgroundReads
from gateway.request.client_response import CLIENT_GONE, ClientResponse
from gateway.request.idempotency.idempotency_store import IdempotencyStore
from gateway.request.load_tracker import LoadTracker
from gateway.request.outcome_evidence import cancelled
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.request.prompt_reader import (
    PromptReader,
    fetching_body,
    may_be_the_fetch,
    without_params,
)
from gateway.request.refusals import (
    BudgetShortfall,
    after_earlier,
    over_budget,
    status_of,
    upstream_failure,
)
from gateway.request.request_parser import attempt_body, attempt_route
from gateway.request.response_writer import ResponseWriter
from gateway.request.retry_budget import RetryBudget
from gateway.request.silent_engine import SilentEngineDetector
from gateway.request.stage_planner import StagePlanner
from gateway.request.stage_turns import cause_of_error
from gateway.request.trace_observer import TraceObserver
from gateway.sound.sound_decoder import SoundLengths
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.identity.keys import Identity
from ledger.journals.journal import JournalError
from router.filters import counted_tokens
from router.stages import StageCause
from router.types import Residency, Verdict

MAX_ATTEMPTS = 3  # as the SRE book advises: more tries multiply an outage
RETRY_S = 5.0
UNRECORDED = f"The request cannot be recorded now. Retry in {RETRY_S:g} s."


class SampleSink(Protocol):
    """A sink of answered requests, compared with a baseline; implemented by `SampleSender`."""

    def offer(self, asked: InferenceRequest, identity: Identity, target: Target) -> None:
        """Take a request that `target` answered, without waiting."""

    def close(self) -> None:
        """Release the sink's resources."""


class AsyncClosable(Protocol):
    """A part that holds connections or processes."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher(StagePlanner):
    """The dispatcher of one worker's requests."""

    delivery: ResponseWriter
    flights: LoadTracker
    experience: TargetStats
    submissions: IdempotencyStore
    retries: RetryBudget = field(default_factory=RetryBudget)
    silences: SilentEngineDetector
    deadlines: Deadlines
    whole: Deadlines  # for an answer in one piece, whose head comes when it is complete
    drawing: SampleSink | None  # `None`: no answered request is sampled
    sounds: SoundLengths  # decodes sound before a request is planned
    observer: TraceObserver | None = None  # `None`: no tracing
    left: BackgroundReads = field(default_factory=BackgroundReads)  # of disconnected clients
    frees: set[asyncio.Task[None]] = field(default_factory=set)  # of KV without a reader

    @property
    def reader(self) -> PromptReader:
        """Return the reader that has prompts read by other engines than those that answer."""
        return PromptReader(self.flights, self.experience, self.clock, self.frees)

    async def aclose(self) -> None:
        """Cancel the freeing of KV, and close the dispatcher's parts."""
        for task in tuple(self.frees):  # their leases end without it
            task.cancel()
        await asyncio.gather(*self.frees, return_exceptions=True)
        for part in (self.submissions, self.sounds, self.inspector):
            if part is not None:
                await part.aclose()

    async def dispatch(
        self, asked: InferenceRequest, identity: Identity, reply: ClientResponse
    ) -> None:
        """Answer the request on `reply`, or raise the `RequestError` that explains why not."""
        asked_s = self.clock.now_s()
        looked = await self.look_first(asked, identity, reply)
        if looked is None:
            return
        asked = looked
        tries = await self.begin(asked, identity, reply)
        refusal: RequestError | None = None
        short: BudgetShortfall | None = None
        number = 0
        failing: list[Target] = []
        self.retries.count_request()
        while (verdict := tries.next() or self._go_on(tries, asked, identity, reply)) is not None:
            attempt = await self._fit_attempt(tries.plan, tries.plan.step(verdict), number + 1)
            if isinstance(attempt, BudgetRefusal):
                bound_pusd = verdict.candidate.bound_pusd
                refusal = refusal or over_budget(
                    attempt, bound_pusd, asked.kind, named=identity.named_tags
                )
                short = short or BudgetShortfall(attempt, bound_pusd)
                tries.record_cause(StageCause.ANY)
                continue
            number += 1
            tries.tried += 1
            attempt.last = tries.is_last or tries.tried == MAX_ATTEMPTS
            attempt.tries, attempt.waited_s = tries, attempt.dispatched_s - asked_s
            attempt.story, reply.attempt = reply.story, attempt
            error = await self._attempt(attempt, reply)
            if number > 1:
                self.retries.record_retry(ok=error is None)
            if error is None:
                target = attempt.step.frozen.target
                self._discount_failures(identity, failing, target)
                if self.drawing is not None and target.own and asked.residency is Residency.ANY:
                    self.drawing.offer(attempt.plan.asked, identity, target)
                return
            name = attempt.step.frozen.target.name
            told = upstream_failure(error, name, [target.name for target in failing])
            refusal = after_earlier(told, refusal, tries.plan.decision.verdicts)
            tries.record_cause(cause_of_error(error), name)
            if isinstance(error, DispatchSuperseded):
                continue  # no failure: it was sent to the wrong target
            if may_be_the_fetch(attempt, error):
                tries.retry_straight(verdict)
            failing.append(attempt.step.frozen.target)
            reply.note_charge(billable=error.billable)
            ends = tries.tried == MAX_ATTEMPTS or not self.retries.allowed
            if ends and not self.go_on(tries, asked, identity, reply):
                break
        assert refusal is not None, "a plan without steps was refused when it was made"
        # A retry may reach a target that was not tried.
        refusal.retry = refusal.retry if tries.next() is None else None
        raise refusal if number else self._refuse_attempts(tries, refusal, short)

    def _refuse_attempts(
        self, tries: CandidateQueue, refusal: RequestError, short: BudgetShortfall | None
    ) -> RequestError:
        """Record that no candidate fitted its budgets, and return the refusal."""
        status = refusal.row.status
        self.metering.refuse(tries.plan, reason="budget", http_status=status, short=short)
        return refusal

    def _go_on(
        self,
        tries: CandidateQueue,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
    ) -> Verdict | None:
        """Return the first candidate of the next stage that is due, if there is one."""
        if tries.plan.route.later and self.go_on(tries, asked, identity, reply):
            return tries.next()
        return None

    def _discount_failures(
        self, identity: Identity, failing: list[Target], answering: Target
    ) -> None:
        """Stop suspecting the key for failures of a replica if another of its pool answered."""
        for target in failing:
            if target.own and target.pool == answering.pool:
                self.experience.discount_failures(target.row, identity.key_id)

    async def _fit_attempt(
        self, plan: RoutingPlan, step: AttemptPlan, number: int
    ) -> Attempt | BudgetRefusal:
        """Return an attempt held in full, or with an answer short enough for the budgets."""
        held = await self._held(plan, step, number)
        if not isinstance(held, BudgetRefusal):
            return held
        shorter = step.fit_to_budget(held.room_pusd)
        if shorter is None:
            return held
        return await self._held(plan.with_attempt(shorter), shorter, number)

    async def _held(
        self, plan: RoutingPlan, step: AttemptPlan, number: int
    ) -> Attempt | BudgetRefusal:
        """Return the attempt in the journal, with holds and reserved load, or the refusal."""
        attempt_id = f"{plan.request_id}.{number}"
        target, bound = step.frozen.target, step.verdict.candidate.bound_pusd or 0
        # The load is reserved before any await, so that no other request sees the same capacity.
        now_s = self.clock.now_s()
        flight, passage = self.flights.reserve(plan, step, now_s), None
        leg = None if step.verdict.prefill is None else self.reader.reserve(plan, step, now_s)
        if not target.own:
            passage = self.experience.begin_call(target.row, counted_tokens(plan.request))
        try:
            held = await self.admission.hold(attempt_id, step.scopes, bound)
            if isinstance(held, BudgetRefusal):
                return held
            opened_us = self.clock.wall_us()
            attempt = Attempt(
                plan=plan,
                step=step,
                number=number,
                dispatched_s=self.clock.now_s(),
                holds=held,
                flight=flight,
                passage=passage,
                prefill=leg,
            )
            self._open_record(attempt, opened_us)
            flight = passage = leg = None  # the attempt releases them
        finally:
            for promise in (flight, passage, leg):
                if promise is not None:
                    promise.release()
        return attempt

    def _open_record(self, attempt: Attempt, opened_us: int) -> None:
        """Write the open record before dispatch; without a record nothing is sent."""
        try:
            self.metering.open(attempt, opened_us)
        except JournalError as error:
            self.admission.release(attempt.id, 0)
            raise RequestError("unavailable", UNRECORDED, retry_after_s=RETRY_S) from error

    async def _attempt(self, attempt: Attempt, reply: ClientResponse) -> BackendError | None:
        make = self._attempt_whole if attempt.prefill is None else self._attempt_apart
        return await make(attempt, reply)

    async def _attempt_whole(self, attempt: Attempt, reply: ClientResponse) -> BackendError | None:
        """Make one try. Return the failure if another candidate may be tried, else answer."""
        exchange: Exchange | None = None
        reply.keeps_alive = attempt.plan.asked.stream and attempt.plan.asked.form is None
        goes_on = attempt.goes_on  # an API, whose silence is not watched
        allow, watch = self.left.allow, self.silences.watch_attempt
        try:
            with allow(reply, attempt) if goes_on else watch(attempt, reply.task):
                try:
                    exchange = await self._open(attempt)
                    await self.delivery.answer(attempt, exchange, reply)
                except RequestDeclined as error:
                    # Another target's API may have a form for what this one lacks.
                    goes_on = attempt.leads_on(StageCause.ANY) and self.retries.allowed
                    final = error.sent or not goes_on
                    await self.delivery.decline(attempt, error, reply, final=final)
        except BackendError as error:
            drop_traceback(error)
            return await self._handle_failure(attempt, error, reply)
        except JournalError as error:
            if reply.started:
                raise  # without a row, the answer stays without its end
            reply.charged = True
            raise RequestError("unavailable", UNRECORDED, retry_after_s=RETRY_S) from error
        except asyncio.CancelledError:
            self.metering.settle_later(attempt, cancelled(attempt, reply.ended_by))
            raise
        finally:
            for promise in (attempt.flight, attempt.passage):
                if promise is not None:
                    promise.release()
            if exchange is not None:
                await exchange.aclose()
            self._closed(attempt, reply)
        if attempt.plan.sticky_key is not None:
            self.sessions.remember(attempt.plan.sticky_key, attempt.step.frozen.target.name)
        return None

    async def _attempt_apart(self, attempt: Attempt, reply: ClientResponse) -> BackendError | None:
        """Have another engine read the prompt, then make the try; its KV is always freed."""
        error: BackendError | None = None
        try:
            try:
                await self._read_prompt(attempt)
            except BaseException:  # cancelled or defective: the record must not stay open
                self.metering.settle_later(attempt, cancelled(attempt, reply.ended_by))
                if attempt.flight is not None:
                    attempt.flight.release()
                self._closed(attempt, reply)
                raise
            error = await self._attempt_whole(attempt, reply)
            return error
        finally:
            self.reader.close(attempt, failed=error is not None)

    def _closed(self, attempt: Attempt, reply: ClientResponse) -> None:
        """Settle an attempt that a defect left open; a settled one does not change."""
        if not attempt.settled:
            outcome = AttemptOutcome.cut(
                attempt.relay, "upstream_error", 500, billable=attempt.sent
            )
            self.metering.settle_later(attempt, outcome)
        if reply.use is not None:
            reply.use.tokens += attempt.tokens

    async def _open(self, attempt: Attempt) -> Exchange:
        plan, target = attempt.plan, attempt.step.frozen.target
        body = attempt_body(plan, attempt.step)
        if target.is_apart:
            body = fetching_body(attempt, body)
        headers = {"x-request-id": attempt.id}
        if attempt.story is not None:
            headers |= attempt.story.on_dispatched(attempt.id, attempt.number, plan, attempt.step)
        asked, form = plan.asked, plan.asked.form
        # A target may answer in one piece despite the request for a stream: whisper-1 has none.
        # So may targets of speech and pictures, which have an extent.
        streamed = asked.stream and asked.extent is None
        media = None if form is None else form.content_type
        whole = not asked.stream and KINDS[asked.kind].generated
        deadlines = self._deadlines_of(plan, whole=whole)
        path, told = attempt_route(asked, target)
        call = Call(path, body, streamed, {**headers, **told}, deadlines, media)
        attempt.transmission = call.transmission
        exchange = await target.backend.open(call)
        attempt.stated_cost = exchange.headers.get(COST_HEADER)
        if attempt.passage is not None:
            self.experience.record_answer(target.row)
            if target.shares_row:
                self.experience.held_off.record_answer(target.row, target.upstream_model)
            wall_s = self.clock.wall_us() / 1e6
            self._record_head(attempt, parse_rate_limit(exchange.headers, wall_s=wall_s))
        return exchange

    def _deadlines_of(self, plan: RoutingPlan, *, whole: bool) -> Deadlines:
        if plan.route.deadlines is not None:
            return plan.route.deadlines.of(whole=whole)
        return self.whole if whole else self.deadlines

    async def _read_prompt(self, attempt: Attempt) -> None:
        """Have another engine read the prompt before the attempt's own target is called."""
        plan, target = attempt.plan, attempt.step.frozen.target
        path, _ = attempt_route(plan.asked, target)
        body = without_params(attempt_body(plan, attempt.step))
        attempt.freeing = path, body
        await self.reader.read(attempt, path, body, self._deadlines_of(plan, whole=True))

    def _record_head(self, attempt: Attempt, limit: RateLimitHeaders | None) -> None:
        """Record that the head of an API's answer arrived, and its rate limit headers, if any."""
        if limit is not None:
            self.experience.record_rate_limit(attempt.step.frozen.target.row, limit)
        if attempt.passage is not None:
            attempt.passage.release()

    async def _handle_failure(
        self, attempt: Attempt, error: BackendError, reply: ClientResponse
    ) -> BackendError | None:
        """Settle a failed try; return the error if another may follow, else end the stream."""
        target = attempt.step.frozen.target
        if isinstance(error, UpstreamOverloaded) and not target.own:
            self._record_head(attempt, error.rate_limit)
            if target.shares_row and error.status == LIMITED:
                self.experience.held_off.record_refusal(target.row, target.upstream_model, error)
            elif error.retry_after_s:
                self.experience.record_retry_after(target.row, error.retry_after_s)
        status, http_status = status_of(error)
        outcome = AttemptOutcome.failed(attempt.relay, error, status, http_status)
        if attempt.goes_on and reply.ended_by is not None:  # no client waits for another target
            if isinstance(error, HeadTimeout | IdleTimeout):  # not the target's failure
                outcome = cancelled(attempt, CLIENT_GONE)
            self.metering.settle_later(attempt, outcome)
            return None
        if not reply.started:
            self.metering.settle_later(attempt, outcome)
            return error  # no byte was sent: another target may still answer
        await self.metering.settle(attempt, outcome)
        told, reply.broken = upstream_failure(error, target.name), True
        await reply.tell_broken(error_event(told.message, told.row.type, told.row.code))
        return None
