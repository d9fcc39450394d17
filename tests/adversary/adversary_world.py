"""The product's own planner, relay, meter and charge, without sockets or processes.

`AdversaryWorld.play` takes the calls of a schedule in turn against one hard budget: plan, hold,
answer as it comes from the scripted upstream, settle. What the books would get is in each
`CallResult`, and in a journal where the schedule has one (`adversary_books`).
"""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import yaml
from adversary_calls import AdversaryCall, AdversarySchedule
from msgspec.structs import replace as replace_members

from backends.errors import BackendError, IdleTimeout
from gateway.clock import Clock
from gateway.config.settings import parse
from gateway.errors import RequestError
from gateway.fleet.candidates import CandidateBuilder
from gateway.fleet.fleet import Fleet
from gateway.fleet.output_overruns import TargetOverruns
from gateway.fleet.shared_load import SharedLoadTable
from gateway.kinds import KIND_PATHS, KINDS
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.client_response import CLIENT_GONE, ClientResponse
from gateway.request.degraded_decider import DegradedDecider
from gateway.request.dialects.native_messages import stated_searches
from gateway.request.metering import UsageMeter
from gateway.request.plan import AttemptPlan, LearnedEstimates, RoutePlanner, RoutingPlan
from gateway.request.refusals import status_of
from gateway.request.reported_usage import bounds_of
from gateway.request.request_parser import attempt_body
from gateway.request.response_writer import ResponseWriter
from gateway.request.routes import RouteCache
from gateway.request.usage_checks import most_tokens
from gateway.runtime import RuntimePorts, resolve_runtime
from gateway.sound.decoded_sound import DecodedSound
from gateway.telemetry.metrics.requests import RequestMetrics
from ledger.budgets.escrow import budget_key
from ledger.identity.keys import Identity
from ledger.journals.journal import JournalWriter
from ledger.journals.records import AttemptOpened, AttemptSettled, Hold, TokenCounts
from ledger.prices.book import Price, PriceBook
from router.estimates import OutputLengths
from router.token_ratio import TokenRatio

MODEL = "up/m"
ACCOUNT = "up"  # that is billed for all
DAY_S, WALL_S = 86_400, 1_800_000_000
WINDOW_S = WALL_S - WALL_S % DAY_S  # the day's window of every budget
PROVIDER = {
    "base_url": "http://127.0.0.1:9/v1",
    "kinds": [
        "chat", "completion", "embedding", "rerank", "transcription", "score", "moderation",
        "speech", "image_generation",
    ],
    "features": ["tools", "json_schema", "images", "logprobs", "n", "reasoning", "hosted_tools"],
    "prices_as": MODEL,
}  # fmt: skip
CONFIG = {
    "models": {"up/*": "passthrough", "openai/*": "passthrough"},
    "providers": {
        ACCOUNT: PROVIDER,
        "openai": {**PROVIDER, "tier": "priority", "billed_with": ACCOUNT},
    },
}


@dataclass(frozen=True, slots=True)
class SchedulePlace:
    """Where a schedule stands in a ledger: its team, its price's version, and the journal."""

    team: str = "t"
    version: int = 1
    journal: JournalWriter | None = None

    @property
    def identity(self) -> Identity:
        return Identity(
            key_id="k", user_id=None, team_id=self.team, org_id="o",
            scopes=frozenset(["inference"]), models=None, residency="any", tags=(),
            isolation="team",
        )  # fmt: skip

    @property
    def budget_id(self) -> str:
        return budget_key(f"team:{self.team}", "day")


@dataclass(slots=True)
class CallResult:
    """`room_pusd` is what the budget had left before the call; `refused` says why it was not sent.

    `is_limited`: the client set `max_tokens`, so that the hold does not follow the room; `most`:
    the tokens that were held for.
    """

    call: AdversaryCall
    room_pusd: int
    bound_pusd: int | None = None
    is_limited: bool = False
    opened: AttemptOpened | None = None
    settled: AttemptSettled | None = None
    refused: str | None = None
    spent_pusd: int = 0
    most: TokenCounts | None = None
    asked_tier: str | None = None  # of its target, where the call says what it must be


@dataclass(slots=True)
class HardBudget:
    """One scope with a hard limit, in place of the budgets of a worker."""

    limit_pusd: int = 0
    spent_pusd: int = 0

    @property
    def room_pusd(self) -> int:
        return max(0, self.limit_pusd - self.spent_pusd)

    def rooms(self, _identity: Identity, _model: str, targets: Any) -> Any:
        scopes = (("team:t",),) * len(targets)
        return SimpleNamespace(scopes=scopes, pusd=lambda: (self.room_pusd,) * len(targets))

    def release(self, _attempt_id: str, actual_pusd: int) -> None:
        self.spent_pusd += actual_pusd


@dataclass(slots=True)
class RecordList:
    """A journal whose records are kept, and written to a true one where there is one."""

    journal: JournalWriter | None = None
    records: list[Any] = field(default_factory=list)

    def append(self, record: Any) -> None:
        self.records.append(record)
        if self.journal is not None:
            self.journal.append(record)

    def append_ending(self, record: Any, written: Any) -> None:
        self.records.append(record)
        if self.journal is not None:
            self.journal.append_ending(record)
        written()

    async def append_durable(self, record: Any, written: Any) -> None:
        """Nobody waits for the disk: the schedule's end does."""
        self.append_ending(record, written)


class Listener:
    """Stands for whatever only listens."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_options: None


WAV_HEAD_BYTES = 44


class WavDecoder:
    """The length of the adversary's own files, which are WAV of mu-law at 50 Hz."""

    async def decode(self, sound: bytes) -> DecodedSound:
        length_ms = (len(sound) - WAV_HEAD_BYTES) * 20
        return DecodedSound(length_ms, length_ms)

    async def aclose(self) -> None:
        """Nothing is open."""


class ScriptedExchange:
    """An upstream's answer; its client leaves before the piece `leave_at`.

    A provider that goes on is read on until the piece `cut_at`, as `BackgroundReads` has it.
    """

    def __init__(self, call: AdversaryCall, reply: ClientResponse, *, goes_on: bool) -> None:
        self.status, self.headers = call.status, {"content-type": call.media_type}
        self._reply, self._goes_on = reply, goes_on
        self._pieces, self._leave_at, self._number = call.pieces, call.leave_at, -1
        self._cut_at, self._silent_at = call.cut_at, call.silent_at

    def __aiter__(self) -> Self:
        return self  # whoever begins again goes on where the answer is

    async def __anext__(self) -> bytes:
        self._number += 1
        if self._number == self._leave_at:
            if not self._goes_on:
                raise asyncio.CancelledError
            self._reply.ended_by = CLIENT_GONE
        if self._number == self._cut_at:
            raise asyncio.CancelledError
        if self._number == self._silent_at:
            raise IdleTimeout("the answer went silent")
        if self._number == len(self._pieces):
            raise StopAsyncIteration
        return self._pieces[self._number]

    async def aclose(self) -> None:
        """Nothing is open."""


class AdversaryWorld:
    """One worker's request path; prices, budget and estimates are new for each schedule."""

    def __init__(self, folder: Path) -> None:
        settings = parse(yaml.safe_dump({"state_dir": str(folder), **CONFIG}), name="adversary")
        runtime = resolve_runtime(
            settings, RuntimePorts({}, {}), ledger_url="sqlite://", policy_version="1"
        )
        self._board = SharedLoadTable(folder / "board", runtime.layout)
        self._clock = Clock(now_s=lambda: 1000.0, wall_us=lambda: WALL_S * 10**6)
        metrics = RequestMetrics(None, models=[], targets=[])
        self._metrics, self._budget = metrics, HardBudget()
        fleet = Fleet(settings, runtime, lambda *_: SimpleNamespace(secrets=()))
        self._routes = RouteCache(settings, fleet, self._budget)
        self._decider = DegradedDecider(self._board, metrics)
        self._picture_tokens = settings.server.picture_tokens
        self._max_n = settings.server.max_n
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._loop.close()
        self._board.close()

    def play(
        self,
        schedule: AdversarySchedule,
        place: SchedulePlace = SchedulePlace(),
    ) -> list[CallResult]:
        self._budget.limit_pusd, self._budget.spent_pusd = schedule.limit_pusd, 0
        price = Price(place.version, MODEL, "adversary", 0, schedule.terms)
        limits = {} if schedule.limits is None else {MODEL: schedule.limits}
        learned = LearnedEstimates(TokenRatio(), OutputLengths())
        candidates = CandidateBuilder(
            self._board,
            PriceBook([price]),
            stale_s=10.0,
            limits=limits,
            overruns=TargetOverruns(learned.target_output, learned.target_prompts),
        )
        planner = RoutePlanner(
            "1", self._routes, candidates, learned, self._decider,
            picture_tokens=self._picture_tokens,
        )  # fmt: skip
        return self._loop.run_until_complete(self._play(schedule, planner, learned, place))

    async def _play(
        self,
        schedule: AdversarySchedule,
        planner: RoutePlanner,
        learned: LearnedEstimates,
        place: SchedulePlace,
    ) -> list[CallResult]:
        results = []
        for number, call in enumerate(schedule.calls):
            result = CallResult(call, self._budget.room_pusd)
            try:
                plan = await self._plan(planner, call, f"{place.team}-{number}", place.identity)
                result.bound_pusd = plan.decision.verdicts[0].candidate.bound_pusd
                result.is_limited = plan.request.max_tokens is not None
                step = self._held(plan)
                if step is None:
                    result.refused = plan.decision.reason.value
                else:
                    hold = Hold(place.budget_id, WINDOW_S, step.verdict.candidate.bound_pusd or 0)
                    attempt = Attempt(plan, step, 1, 999.0, (hold,))
                    result.most = most_tokens(bounds_of(attempt))
                    if call.asks is not None:
                        sent = json.loads(attempt_body(plan, step))
                        result.asked_tier = sent.get("service_tier")
                    await self._attempt(attempt, result, learned, place.journal)
            except RequestError as error:
                result.refused = error.row.code or error.row.type
            result.spent_pusd = self._budget.spent_pusd
            results.append(result)
        return results

    async def _plan(
        self, planner: RoutePlanner, call: AdversaryCall, name: str, identity: Identity
    ) -> RoutingPlan:
        body = IncomingBody(call.body, call.content_type, None, max_n=self._max_n)
        asked = KIND_PATHS[call.path].read(body)
        # Limits of searches, and the standard tier alone, are of Messages, which are not played.
        asked = replace_members(
            asked,
            searches_limit=stated_searches(asked.members),
            standard_tier=call.standard_only,
        )
        measure = KINDS[asked.kind].measure
        if measure is not None:
            asked = await measure(asked, WavDecoder())
        return planner.plan(name, asked, identity, clock=self._clock, sticky=lambda _: None)

    def _held(self, plan: RoutingPlan) -> AttemptPlan | None:
        """The attempt that the budget has room for, as `Dispatcher` holds it."""
        if not plan.decision.order:
            return None
        step = plan.step(plan.decision.order[0])
        if (step.verdict.candidate.bound_pusd or 0) <= self._budget.room_pusd:
            return step
        return step.fit_to_budget(self._budget.room_pusd)

    async def _attempt(
        self,
        attempt: Attempt,
        result: CallResult,
        learned: LearnedEstimates,
        written: JournalWriter | None,
    ) -> None:
        """Answer and settle, with the endings of `Dispatcher`."""
        journal, quiet = RecordList(written), Listener()
        meter = UsageMeter(journal, self._budget, self._metrics, quiet, learned, self._clock)
        writer = ResponseWriter(meter, self._clock)
        reply = ClientResponse(_swallow, request_id="r", clock=self._clock.now_s, task=quiet)
        meter.open(attempt, self._clock.wall_us())
        try:
            target = attempt.step.frozen.target
            exchange = ScriptedExchange(result.call, reply, goes_on=target.goes_on)
            await writer.answer(attempt, exchange, reply)
        except BackendError as error:
            status, http_status = status_of(error)
            failed = AttemptOutcome.failed(attempt.relay, error, status, http_status)
            meter.settle_later(attempt, failed)
        except asyncio.CancelledError:
            meter.settle_later(attempt, AttemptOutcome.cut(attempt.relay, "client_gone", 499))
        result.opened, result.settled = journal.records


async def _swallow(_message: Any) -> None:
    """A client that reads all and answers nothing."""
