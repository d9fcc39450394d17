"""One try at one target, from dispatch to its outcome."""

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
TELL_S = 0.04  # between two words to the board about one stream; chunks come faster


class CandidateQueue:
    """The candidates of a request that were not tried yet; none once an answer begins.

    They are those of one stage. `causes`: why targets so far did not answer, and `asked` those
    that were asked; both are kept of models with several stages alone. `is_final`: no later stage
    can serve it either, so that what its policy says of that holds. `tried`: in this stage.
    """

    __slots__ = ("_left", "asked", "causes", "is_final", "plan", "tried")

    def __init__(self, plan: RoutingPlan) -> None:
        self.plan = plan
        self.causes: frozenset[StageCause] = _NO_CAUSE
        self.asked: tuple[str, ...] = ()
        self.is_final = False
        self.enter_stage(plan)

    def enter_stage(self, plan: RoutingPlan) -> bool:
        """Go on to the candidates of a plan; whether one of them was not asked before."""
        self.plan, self.tried = plan, 0
        left = list(reversed(plan.decision.order))
        if self.asked:
            left = [verdict for verdict in left if verdict.candidate.name not in self.asked]
        self._left = left
        return bool(left)

    def next(self) -> Verdict | None:
        return self._left.pop() if self._left else None

    def retry_straight(self, verdict: Verdict) -> None:
        """Next, the same engine reads the prompt itself."""
        self._left.append(verdict._replace(prefill=None))

    @property
    def is_last(self) -> bool:
        """Whether nobody of this stage is left to be tried."""
        return not self._left

    def record_cause(self, cause: StageCause, asked: str | None = None) -> None:
        """A target did not answer for this cause; `asked`: its name, if it was asked."""
        if self.plan.route.is_staged:
            self.causes |= {cause}
            self.asked += () if asked is None else (asked,)

    def leads_on(self, cause: StageCause) -> bool:
        """Whether a later stage would be asked, were this cause the next one."""
        later = self.plan.route.later
        if not later:
            return False
        causes = self.causes | {cause}
        return any(is_due(route.after, causes) for route in later)

    def end(self, plan: RoutingPlan) -> None:
        """`plan`: what stays to be known of it."""
        self.plan = plan
        self._left.clear()


@dataclass(slots=True)
class Attempt:
    """Times are monotonic seconds; `events` counts the content events relayed so far.

    `opened_us`: the wall clock when it was dispatched, once that is in the journal. `waited_s`: how
    long the request had been there when this try was dispatched, in the gateway's queue or at
    targets that failed. Its client waits for that, too.
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
    told_s: float = 0.0  # when the board heard of it last, and of how many events
    told_events: int = 0
    tries: CandidateQueue | None = None
    story: RequestTrace | None = None  # of its request, where somebody follows it
    waited_s: float = 0.0
    tokens: int = 0  # once it is settled: all that it took
    booked: TokenCounts | None = None  # the same by kind, as the ledger has it
    record: AttemptSettled | None = None  # that it was settled by
    transmission: Transmission | None = None  # of its call, once its backend is asked
    spill_reason: str | None = None  # why no own engine serves it, as its record says
    stated_cost: str | None = None  # in dollars, by a header of the answer
    prefill: PrefillLeg | None = None  # where another engine reads its prompt
    freeing: tuple[str, bytes] | None = None  # path and body that KV of its prompt is freed with
    asked_s: float = 0.0  # when its own target was asked
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = f"{self.plan.request_id}.{self.number}"
        self.asked_s = self.dispatched_s

    def leads_on(self, cause: StageCause) -> bool:
        """Whether somebody else would be asked, were it not to answer for this cause."""
        return not self.last or self.leads_to_stage(cause)

    def leads_to_stage(self, cause: StageCause) -> bool:
        """Whether a later stage waits for it not to answer for this cause."""
        return self.tries is not None and self.tries.leads_on(cause)

    @property
    def decode_s(self) -> float:
        """From the first arrival of content to the last one."""
        if self.first_token_s is None or self.last_token_s is None:
            return 0.0
        return self.last_token_s - self.first_token_s

    @property
    def own(self) -> bool:
        return self.step.frozen.target.own

    @property
    def searches(self) -> bool:
        """Whether its target may run tools of its own, whose fees and reading usage alone tells."""
        return Feature.HOSTED_TOOLS in self.plan.request.features

    @property
    def goes_on(self) -> bool:
        """Whether its answer is read on without its client: its target goes on, or may search."""
        return self.step.frozen.target.goes_on or (self.searches and not self.own)

    @property
    def sent(self) -> bool:
        """Whether a byte of the request may have left for its target."""
        return self.transmission is not None and self.transmission.possible

    @property
    def ignored_members(self) -> tuple[str, ...]:
        """Members of the request's body that its target does not get."""
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
        """Its answer begins, so no other target is tried: what it was chosen among is let go.

        A stream may last for minutes, and eight candidates hold 8 KB.
        """
        self.plan = self.plan.reduce_to(self.step.verdict)
        if self.tries is not None:
            self.tries.end(self.plan)
            self.tries = None

    def observe_content(self, now_s: float, events: int) -> None:
        """Content arrived: `events` content events in all.

        An event may carry several tokens, or none that can be read yet: where the engine counts,
        its count is what the sequence holds. The board hears of the first at once.
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
