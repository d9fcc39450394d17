"""One upstream try at one target, from dispatch to its outcome."""

from bisect import bisect_left
from dataclasses import dataclass, field

from backends.sending import Transmission
from gateway.fleet.gap_counts import GAP_BUCKETS, PACE_BOUNDS_S
from gateway.fleet.target_stats import ApiCall
from gateway.kinds.engine_relay import EventRelay
from gateway.kinds.relay import ByteRelay
from gateway.kinds.template_arguments import TEMPLATE_ARGUMENTS
from gateway.request.load_tracker import LoadReservation
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.request.prefill_leg import PrefillLeg
from gateway.request.request_parser import unnamed_tier
from gateway.request.trace_observer import RequestTrace
from ledger.journals.records import AttemptSettled, Hold, TokenCounts
from router.stages import StageCause, is_due
from router.types import Feature, Verdict

_NO_CAUSE: frozenset[StageCause] = frozenset()
TELL_S = 0.04  # between two load updates of one stream; chunks come faster


class CandidateQueue:
    """The candidates of one stage that were not tried yet; empty once an answer begins.

    For models with several stages, `causes` says why earlier targets did not answer and `asked`
    names them. `is_final` is set once no later stage can serve the request either, so that the
    policy's fallback applies. `tried` counts the tries in this stage.
    """

    __slots__ = ("_left", "asked", "causes", "is_final", "plan", "tried")

    def __init__(self, plan: RoutingPlan) -> None:
        self.plan = plan
        self.causes: frozenset[StageCause] = _NO_CAUSE
        self.asked: tuple[str, ...] = ()
        self.is_final = False
        self.enter_stage(plan)

    def enter_stage(self, plan: RoutingPlan) -> bool:
        """Load a plan's candidates; return whether one of them was not tried before."""
        self.plan, self.tried = plan, 0
        left = list(reversed(plan.decision.order))
        if self.asked:
            left = [verdict for verdict in left if verdict.candidate.name not in self.asked]
        self._left = left
        return bool(left)

    def next(self) -> Verdict | None:
        return self._left.pop() if self._left else None

    def retry_straight(self, verdict: Verdict) -> None:
        """Queue the same engine next, reading the prompt itself."""
        self._left.append(verdict._replace(prefill=None))

    @property
    def is_last(self) -> bool:
        """Return whether no candidate of this stage is left."""
        return not self._left

    def record_cause(self, cause: StageCause, asked: str | None = None) -> None:
        """Record why a target did not answer; `asked` is its name if a request was sent to it."""
        if self.plan.route.is_staged:
            self.causes |= {cause}
            self.asked += () if asked is None else (asked,)

    def leads_on(self, cause: StageCause) -> bool:
        """Return whether a later stage would be tried after a failure with this cause."""
        later = self.plan.route.later
        if not later:
            return False
        causes = self.causes | {cause}
        return any(is_due(route.after, causes) for route in later)

    def end(self, plan: RoutingPlan) -> None:
        """Drop the remaining candidates, and keep the reduced `plan`."""
        self.plan = plan
        self._left.clear()


@dataclass(slots=True)
class Attempt:
    """State of one try at one target. Times are monotonic seconds.

    `events` counts the content events relayed so far. `opened_us` is the wall clock at dispatch,
    set once the journal has the open record. `waited_s` is how long the request had been waiting at
    dispatch, in the gateway's queue or at targets that failed; the client waits for that time, too.
    """

    plan: RoutingPlan
    step: AttemptPlan
    number: int
    dispatched_s: float
    holds: tuple[Hold, ...]
    last: bool = False  # no further candidate would be tried
    flight: LoadReservation | None = None
    passage: ApiCall | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    events: int = 0
    gaps: list[int] | None = None  # between arrivals of content, counted by `PACE_BOUNDS_S`
    relay: EventRelay | ByteRelay | None = None
    opened_us: int | None = None
    settled: bool = False
    told_s: float = 0.0  # time and event count of the last load update
    told_events: int = 0
    tries: CandidateQueue | None = None
    story: RequestTrace | None = None  # trace of the request, if it is observed
    waited_s: float = 0.0
    tokens: int = 0  # all tokens, once settled
    booked: TokenCounts | None = None  # the tokens by kind, as in the ledger
    record: AttemptSettled | None = None  # the settle record
    transmission: Transmission | None = None  # of the upstream call, once it is made
    spill_reason: str | None = None  # why no own engine serves it, as recorded
    stated_cost: str | None = None  # in dollars, from a header of the answer
    prefill: PrefillLeg | None = None  # if another engine reads its prompt
    freeing: tuple[str, bytes] | None = None  # path and body to free the prompt's KV with
    asked_s: float = 0.0  # when its own target was called
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = f"{self.plan.request_id}.{self.number}"
        self.asked_s = self.dispatched_s

    def leads_on(self, cause: StageCause) -> bool:
        """Return whether another target would be tried after a failure with this cause."""
        return not self.last or self.leads_to_stage(cause)

    def leads_to_stage(self, cause: StageCause) -> bool:
        """Return whether a later stage would be tried after a failure with this cause."""
        return self.tries is not None and self.tries.leads_on(cause)

    @property
    def decode_s(self) -> float:
        """Return the seconds from the first content to the last, 0.0 before any content."""
        if self.first_token_s is None or self.last_token_s is None:
            return 0.0
        return self.last_token_s - self.first_token_s

    @property
    def own(self) -> bool:
        return self.step.frozen.target.own

    @property
    def searches(self) -> bool:
        """Return whether the target may run hosted tools, whose fees only its usage reports."""
        return Feature.HOSTED_TOOLS in self.plan.request.features

    @property
    def goes_on(self) -> bool:
        """Return whether the answer is read to its end after the client disconnects.

        That is so where the provider goes on generating, or may run hosted tools.
        """
        return self.step.frozen.target.goes_on or (self.searches and not self.own)

    @property
    def sent(self) -> bool:
        """Return whether a byte of the request may have been sent to the target."""
        return self.transmission is not None and self.transmission.possible

    @property
    def ignored_members(self) -> tuple[str, ...]:
        """Return the members of the request's body that the target does not get."""
        asked, target = self.plan.asked, self.step.frozen.target
        whole = asked.native if target.speaks_messages else None
        found = asked.ignored
        if whole is not None:
            found = whole.left_out(tells_users=target.tells_users)
        elif asked.translated and not target.takes_marks:
            marked = [f"{name}.cache_control" for name in asked.translated]
            found += tuple(name for name in marked if name not in found)
        if whole is None and asked.standard_tier:
            found += unnamed_tier(asked, target)
        if asked.template_arguments and not target.template_arguments:
            found += (TEMPLATE_ARGUMENTS,)
        if self.transmission is not None and self.transmission.ignored:
            found += self.transmission.ignored
        return found

    def start_answer(self) -> None:
        """Drop the other candidates: an answer begins, so no other target is tried.

        A stream may last for minutes, and eight candidates hold 8 KB.
        """
        self.plan = self.plan.reduce_to(self.step.verdict)
        if self.tries is not None:
            self.tries.end(self.plan)
            self.tries = None

    def observe_content(self, now_s: float, events: int) -> None:
        """Record the arrival of content; `events` counts the content events so far.

        An event may carry several tokens, or none that can be read yet. Where the engine reports
        counts, these are used. The first event updates the shared load table at once.
        """
        last_s, gaps = self.last_token_s, self.gaps
        if last_s is None or gaps is None:
            self.first_token_s, self.gaps = now_s, [0] * GAP_BUCKETS
            if self.prefill is not None:
                self.prefill.record_fetched(now_s)
                self.freeing = None
        else:
            gaps[bisect_left(PACE_BOUNDS_S, now_s - last_s)] += 1
        self.last_token_s = now_s
        self.events = events
        if self.flight is not None and now_s - self.told_s >= TELL_S:
            self._update_load(self.flight, now_s)

    def _update_load(self, flight: LoadReservation, now_s: float) -> None:
        flight.first_token(now_s)
        counts = None if self.relay is None else self.relay.counts
        if counts is not None:
            flight.set_counts(*counts, now_s)
        else:
            flight.add_tokens(self.events - self.told_events)
        self.told_s, self.told_events = now_s, self.events
