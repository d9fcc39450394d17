"""Telemetry of one own engine: read metrics, correct dead reckoning, publish.

The gateway's own events show its requests in flight. The scrape adds what they do not show: whether
the engine answers, its KV size, and foreign load. Load reported by other hosts counts like own load
and is not foreign. Foreign load is the least excess of the last few scrapes, because a scrape and
the events never refer to the same moment.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backends.kvevents import PrefixMemory
from backends.metrics import METRICS_PATH, EngineSample, parse
from backends.stepmodel import FittedStepModel
from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import HEALTHS, EngineCell, LoadCell
from ledger.fleet.samples import PPM, FleetSample
from router.feedback import FeedbackLoops, FeedbackSums, PrefixHitTrust

AT_ONCE = 4  # engines read per wake-up: a wake-up costs more than reading a page
EXCESS_KEPT = 3
TAKE_OVER_S = 60.0  # maximum age of values from an earlier telemetry
SAME_RTT_US, SAME_RTT = 500, 0.25  # smaller changes of a round trip are noise
RECKONED_S = 5.0  # interval of estimates of what a prefix cache dropped
MEET_AGAIN_S, MEET_AGAIN_LIMIT_S = 0.5, 60.0
STARTED_SLACK_S = 1.0  # tolerance for a process start in different clocks


@dataclass(slots=True)
class EngineStartLimits:
    """Limits that an engine was started with, in tokens and sequences."""

    max_num_seqs: int
    prefill_budget_tokens: int
    context_tokens: int = 0
    kv_capacity_tokens: int = 0  # as configured, if the metrics do not have it


class EngineScraper:
    """Current view of one engine; `row` is its row in the shared load table."""

    def __init__(
        self, name: str, pool: str, row: int, limits: EngineStartLimits, *, simulated: bool
    ) -> None:
        self.name = name
        self.pool = pool
        self.row = row
        self.limits = limits
        self.simulated = simulated
        self.page = METRICS_PATH  # where its metrics are
        self.fixed_pusd_per_s = 0  # the operator's bid price, if any
        self.round_trip_s: float | None = None
        self.way_measured_s: float | None = None
        self._told_rtt_us: int | None = None
        self.health = "unknown"
        self._busy_s = 0.0
        self._started_s = 0.0
        self.memory = PrefixMemory()
        self.reset(0.0)

    def reset(self, life: float) -> None:
        """Forget everything learned, because another process serves, or none."""
        self.life, self._taken_over = life, False
        self.step: FittedStepModel | None = None
        self.sample: EngineSample | None = None
        self.read_s: float | None = None
        self.loops = FeedbackLoops()
        self.trust = PrefixHitTrust()
        self._sent_tokens, self._reckoned_s = -1.0, -RECKONED_S
        self.memory.clear(0.0)  # hashes are valid for one process only
        self.limits.context_tokens = 0
        self.meet_again_s, self._meetings = 0.0, 0
        self.is_assumed = False  # step model is assumed until it is measured while idle
        self._excess: deque[float] = deque(maxlen=EXCESS_KEPT)
        self._page: tuple[str, EngineSample] | None = None  # as read last

    def schedule_measurement(self, now_s: float) -> None:
        """Schedule the next measurement after a failure, with doubling delays up to a limit."""
        self.meet_again_s = now_s + min(MEET_AGAIN_S * 2.0**self._meetings, MEET_AGAIN_LIMIT_S)
        self._meetings += 1

    def take_over(self, board: SharedLoadTable, now_s: float) -> bool:
        """Continue with values published by an earlier telemetry, to avoid measuring twice.

        Only recent values of the same process are used. They are dropped if the first scrape shows
        a later process start. Returns false if there are none.
        """
        said = board.published(self.row)
        updated_s, life = said[EngineCell.UPDATED_S], board.life(self.row)
        model = FittedStepModel(*said[EngineCell.A_S : EngineCell.T0_S + 1])
        recent = updated_s and 0.0 <= now_s - updated_s <= TAKE_OVER_S
        healthy = said[EngineCell.HEALTH] == HEALTHS.index("healthy")
        if not (recent and healthy and said[EngineCell.LIFE] == life and model.a_s > 0.0):
            return False
        self.life, self.step, self.read_s, self._taken_over = life, model, updated_s, True
        self._started_s = said[EngineCell.STARTED_S]
        self.limits.context_tokens = int(said[EngineCell.CONTEXT_TOKENS])
        self.loops.step_feedback = said[EngineCell.STEP_FEEDBACK]
        self.loops.safety_ttft = said[EngineCell.SAFETY_TTFT]
        self.loops.safety_tpot = said[EngineCell.SAFETY_TPOT]
        self.loops.prefill_rate = said[EngineCell.PREFILL_RATE]
        self.loops.spare_misses = said[EngineCell.SPARE_MISSES]
        self.loops.spare_brief_misses = said[EngineCell.SPARE_BRIEF_MISSES]
        self.memory.forgotten_s = said[EngineCell.FORGOTTEN_S]
        return True

    def parse(self, page: str, dialect: str | None) -> EngineSample:
        """Parse a metrics page; an unchanged page of an idle engine is not parsed again.

        Raises `ProbeFailed`.
        """
        if self._page is None or self._page[0] != page:
            self._page = None
            self._page = page, parse(page, dialect)
        return self._page[1]

    def observe_sample(self, sample: EngineSample, board: SharedLoadTable, now_s: float) -> None:
        """Record a good scrape; reset first if the engine restarted since the last one."""
        if sample.kv_capacity_tokens is None and self.limits.kv_capacity_tokens:
            sample = replace(sample, kv_capacity_tokens=self.limits.kv_capacity_tokens)
        started_s = sample.started_at_s or 0.0
        known = self.sample is not None or self._taken_over
        if (known and started_s > self._started_s + STARTED_SLACK_S) or (
            self.sample is not None and not started_s and _fell(self.sample, sample)
        ):
            self.reset(self.life)
            self.memory.clear(now_s)
        self._started_s = max(started_s, self._started_s)
        loads = board.loads(self.row)
        if sample.load is not None:
            self._excess.append(sample.load - loads[LoadCell.SEQUENCES])
        if self.sample is not None and self.read_s is not None and sample.running:
            self._busy_s += now_s - self.read_s
        self.loops.fold(sums_of(board.own_loads(self.row)), now_s)
        if sample.prefix_hit_tokens_total is not None:
            self.trust.fold(loads[LoadCell.PREFIX_EXPECTED_TOTAL], sample.prefix_hit_tokens_total)
        self.sample, self.read_s = sample, now_s

    def reckon_forgotten(self, prefixes: PrefixIndex, board: SharedLoadTable, now_s: float) -> None:
        """Estimate what the prefix cache dropped, for an engine that does not report it.

        The estimate is repeated every `RECKONED_S` if the engine read tokens in between.
        """
        memory, sent = self.memory, board.loads(self.row)[LoadCell.PREFILLED_TOKENS_TOTAL]
        recent = now_s - self._reckoned_s < RECKONED_S
        if memory.has_heard or recent or sent == self._sent_tokens:
            return
        self._sent_tokens, self._reckoned_s = sent, now_s
        memory.forgotten_s = max(memory.forgotten_s, prefixes.forgotten_s(self.row))

    def is_idle(self, board: SharedLoadTable) -> bool:
        """Return whether nothing runs there, own or foreign, as far as its metrics show."""
        ours = board.loads(self.row)[LoadCell.SEQUENCES]
        return not ours and not (self.sample is not None and self.sample.load)

    def publish(self, board: SharedLoadTable) -> None:
        """Write this engine's row; its time stamp is that of the last good scrape."""
        step, sample = self.step, self.sample
        foreign = max(0.0, min(self._excess, default=0.0))
        cells: dict[EngineCell, float] = {
            EngineCell.LIFE: self.life,
            EngineCell.STARTED_S: self._started_s,
            EngineCell.UPDATED_S: self.read_s or 0.0,
            EngineCell.A_S: 0.0 if step is None else step.a_s,
            EngineCell.B_S: 0.0 if step is None else step.b_s,
            EngineCell.C_S: 0.0 if step is None else step.c_s,
            EngineCell.D_S: 0.0 if step is None else step.d_s,
            EngineCell.T0_S: 0.0 if step is None else step.t0_s,
            EngineCell.HEALTH: float(HEALTHS.index(self.health)),
            EngineCell.KV_CAPACITY_TOKENS: float((sample and sample.kv_capacity_tokens) or 0),
            EngineCell.KV_BLOCK_TOKENS: float((sample and sample.kv_block_tokens) or 0),
            EngineCell.FOREIGN_SEQUENCES: foreign,
            EngineCell.FOREIGN_KV_TOKENS: self._foreign_kv(board, foreign),
            EngineCell.STEP_FEEDBACK: self.loops.step_feedback,
            EngineCell.SAFETY_TTFT: self.loops.safety_ttft,
            EngineCell.SAFETY_TPOT: self.loops.safety_tpot,
            EngineCell.PREFILL_RATE: self.loops.prefill_rate,
            EngineCell.SPARE_MISSES: self.loops.spare_misses,
            EngineCell.SPARE_BRIEF_MISSES: self.loops.spare_brief_misses,
            EngineCell.PREFIX_TRUST: self.trust.share,
            EngineCell.MAX_NUM_SEQS: float(self.limits.max_num_seqs),
            EngineCell.PREFILL_BUDGET_TOKENS: float(self.limits.prefill_budget_tokens),
            EngineCell.CONTEXT_TOKENS: float(self.limits.context_tokens),
            EngineCell.FORGOTTEN_S: self.memory.forgotten_s,
            EngineCell.KV_EVENTS_MISSED: float(self.memory.missed),
            EngineCell.ROUND_TRIP_S: self.round_trip_s or 0.0,
        }
        board.publish(self.row, cells)

    def row_for(self, board: SharedLoadTable, *, at_us: int, now_s: float) -> FleetSample:
        """Return the sample of the interval that ends at `at_us`."""
        sample, loads = self.sample, board.loads(self.row)
        capacity = 0 if sample is None else sample.kv_capacity_tokens or 0
        busy_s, self._busy_s = self._busy_s, 0.0
        if sample is None:
            return FleetSample(at_us, self.pool, self.name, self.health, simulated=self.simulated)
        queries, hits = sample.prefix_query_tokens_total, sample.prefix_hit_tokens_total
        return FleetSample(
            at_us=at_us,
            pool=self.pool,
            engine=self.name,
            health=self.health,
            running=sample.running,
            waiting=sample.waiting,
            kv_usage_ppm=None
            if sample.kv_usage_ratio is None
            else round(sample.kv_usage_ratio * PPM),
            kv_promised_ppm=round(loads[LoadCell.PROMISED_TOKENS] / capacity * PPM)
            if capacity
            else None,
            prompt_tokens_total=sample.prompt_tokens_total,
            output_tokens_total=sample.generation_tokens_total,
            preemptions_total=sample.preemptions_total,
            prefix_hit_ppm=round(hits / queries * PPM) if queries and hits is not None else None,
            busy_us=round(busy_s * 1e6),
            step_feedback_ppm=round(self.loops.step_feedback * PPM),
            bid_price_pusd_per_s=self.fixed_pusd_per_s
            or round(board.published(self.row)[EngineCell.BID_PRICE_PUSD_PER_S]),
            age_us=None if self.read_s is None else round((now_s - self.read_s) * 1e6),
            simulated=self.simulated,
        )

    def new_round_trip_us(self) -> int | None:
        """Return the round trip if it changed notably since the last one reported."""
        if self.round_trip_s is None:
            return None
        found, before = round(self.round_trip_s * 1e6), self._told_rtt_us
        if before is not None and abs(found - before) <= max(SAME_RTT_US, SAME_RTT * before):
            return None
        self._told_rtt_us = found
        return found

    def _foreign_kv(self, board: SharedLoadTable, foreign: float) -> float:
        """Return KV tokens beyond the blocks of own sequences.

        Without foreign sequences the excess is only rounding. If the engine does not report its
        usage, each foreign sequence counts with its maximum. If it does not report sequences, the
        usage shows them.
        """
        sample = self.sample
        if sample is None or sample.kv_capacity_tokens is None:
            return 0.0
        if not foreign and sample.load is not None:
            return 0.0
        if sample.kv_usage_ratio is None:
            most = self.limits.context_tokens or sample.kv_capacity_tokens
            return min(float(sample.kv_capacity_tokens), foreign * most)
        loads = board.loads(self.row)
        queued = loads[LoadCell.QUEUED_PREFILL_TOKENS] + loads[LoadCell.QUEUED_HIT_TOKENS]
        own = loads[LoadCell.CONTEXT_TOKENS] + queued
        rounding = loads[LoadCell.SEQUENCES] * (sample.kv_block_tokens or 0)
        return max(0.0, sample.kv_usage_ratio * sample.kv_capacity_tokens - own - rounding)


def _fell(before: EngineSample, after: EngineSample) -> bool:
    """Return whether counters restarted at 0, for an engine that does not report its start."""
    pairs = (
        (before.prompt_tokens_total, after.prompt_tokens_total),
        (before.generation_tokens_total, after.generation_tokens_total),
    )
    return any(old is not None and new is not None and new < old for old, new in pairs)


def turn_s(row: int, engines: int, period_s: float) -> float:
    """Return when within the period an engine is read, so that few are read at once."""
    turns = -(-engines // AT_ONCE)
    return period_s * (row % turns) / turns


def sums_of(loads: Sequence[float]) -> FeedbackSums:
    """Return the feedback of all workers on one engine, from its cells."""
    return FeedbackSums(
        loads[LoadCell.OBSERVED_STEP_S_TOTAL],
        loads[LoadCell.PREDICTED_STEP_S_TOTAL],
        loads[LoadCell.PREFILLED_TOKENS_TOTAL] + loads[LoadCell.QUEUED_PREFILL_TOKENS],
        loads[LoadCell.TTFT_PULL_TOTAL],
        loads[LoadCell.TPOT_PULL_TOTAL],
        loads[LoadCell.JUDGED_TOTAL],
        loads[LoadCell.MISSED_TOTAL],
        loads[LoadCell.BRIEF_PULL_TOTAL],
    )
