"""Usage meter: turns the events of an attempt into journal records and observations.

It is the only writer of journal records in a worker. The open record is in the journal before
dispatch. The settle record is durable before the answer's last byte is sent; after a disconnect
nothing waits for that.
"""

from contextlib import suppress
from functools import partial

import msgspec

from backends.errors import MAY_BE_THE_REQUEST
from gateway.clock import Clock
from gateway.fleet.estimator_accuracy import EstimatorName
from gateway.fleet.target_stats import TargetStats
from gateway.kinds import KINDS
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.admission import BudgetAdmission
from gateway.request.attempt import Attempt
from gateway.request.charging import charge, compare_cost
from gateway.request.learning import LATENCY, EstimateLearner
from gateway.request.outcome_evidence import did_well, hangup_of, usage_findings
from gateway.request.plan import LearnedEstimates, RoutingPlan
from gateway.request.refusals import BudgetShortfall
from gateway.request.request_counters import AttemptLabels, RequestCounters
from ledger.journals.journal import JournalError, JournalWriter
from ledger.journals.records import (
    AttemptOpened,
    AttemptSettled,
    RequestRefused,
    TokenCounts,
)
from ledger.prices.rates import BIGINT_LIMIT, prompt_tokens
from router.request_kinds import KIND_TRAITS


class UsageMeter:
    """The usage meter of one worker."""

    def __init__(
        self,
        journal: JournalWriter,
        admission: BudgetAdmission,
        metrics: RequestCounters,
        experience: TargetStats,
        learned: LearnedEstimates,
        clock: Clock,
    ) -> None:
        self._journal = journal
        self._admission = admission
        self._metrics = metrics
        self._experience = experience
        self._ratio, self.target_output = learned.ratio, learned.target_output
        self._learner = EstimateLearner(learned, metrics)
        self._clock = clock

    def open(self, attempt: Attempt, opened_us: int) -> None:
        """Write the open record; `opened_us` is the wall clock, read before `dispatched_s`.

        In that order the settle time, computed from both, is never after the real settle. A replay
        of the holds by their times then shows no budget above its limit that was not.
        """
        attempt.opened_us = opened_us
        record = opened_record(attempt, opened_us)
        attempt.spill_reason = record.spill_reason
        self._journal.append(record)

    async def settle(self, attempt: Attempt, outcome: AttemptOutcome) -> int | None:
        """Settle durably; return the cost in pico-USD, or None without a price."""
        record = self._settled_record(attempt, outcome)
        written = partial(self._finish, attempt, outcome, record)
        await self._journal.append_durable(record, written)
        return record.cost_pusd

    def settle_later(self, attempt: Attempt, outcome: AttemptOutcome) -> None:
        """Settle where no client waits: the record is written at once and flushed with the next.

        Does nothing if the attempt is settled: the first outcome stands.
        """
        if not attempt.settled:
            record = self._settled_record(attempt, outcome)
            self._journal.append_ending(record, partial(self._finish, attempt, outcome, record))

    def record_policy_notes(self, plan: RoutingPlan) -> None:
        """Count undecided conditions, and the agreement of shadow policies."""
        metrics = self._metrics
        for name in plan.terms.undecided:
            metrics.count_undecided(name)
        if plan.shadow is not None:
            chosen, watched = plan.decision.first_choice, plan.shadow.first_choice
            ours, theirs = (
                None if verdict is None else verdict.candidate.name for verdict in (chosen, watched)
            )
            metrics.count_shadow(plan.shadow.policy, agrees=ours == theirs)

    def refuse(
        self,
        plan: RoutingPlan,
        *,
        reason: str,
        http_status: int,
        scope: str | None = None,
        short: BudgetShortfall | None = None,
    ) -> None:
        """Record a refusal; `scope` names a full rate limit, `short` the budget that was short."""
        self._metrics.count_refusal(reason)
        who = plan.identity
        record = RequestRefused(
            request_id=plan.request_id,
            refused_us=self._clock.wall_us(),
            key_id=who.key_id,
            team_id=who.team_id,
            org_id=who.org_id,
            model=plan.model,
            policy=plan.policy.name,
            reason=reason,
            http_status=http_status,
            scope=scope,
            decision=plan.decision_blob,
            content=None if plan.asked.content is None else plan.asked.content.row,
        )
        if short is not None:
            record = _with_shortfall(record, short)
        with suppress(JournalError):  # a refusal stands without a record if the journal is full
            self._journal.append(record)

    def _settled_record(self, attempt: Attempt, outcome: AttemptOutcome) -> AttemptSettled:
        now_s = self._clock.now_s()
        bill = charge(attempt, outcome, self._ratio, self.target_output, now_s=now_s)
        tokens, cost = bill.tokens, bill.cost_pusd
        if bill.overrun is not None:
            self._learner.learn_overrun(attempt, bill.overrun, self._clock.wall_us() / 1e6)
        if bill.prompt_overrun is not None:
            at_s = self._clock.wall_us() / 1e6
            self._learner.learn_prompt_overrun(attempt, bill.prompt_overrun, at_s)
        ttft_s = _ttft_s(attempt)
        duration_us = round((now_s - attempt.dispatched_s) * 1e6)
        opened_us = attempt.opened_us
        record = AttemptSettled(
            attempt_id=attempt.id,
            # Add the monotonic duration: the wall clock may be set back while a request runs.
            settled_us=self._clock.wall_us() if opened_us is None else opened_us + duration_us,
            status=outcome.status,
            http_status=outcome.http_status,
            tokens=tokens,
            basis=bill.basis,
            cost_pusd=cost,
            ttft_us=None if ttft_s is None else round(ttft_s * 1e6),
            duration_us=duration_us,
            engine_us=bill.engine_us,
            finish_reason=outcome.finish_reason,
            error=outcome.error,
            slo_met=self._slo_met(attempt, outcome, tokens),
            compared=tuple(
                compare_cost(attempt, tokens, comparator) for comparator in attempt.plan.comparators
            ),
            tier=bill.tier,
            unknown_tier=bill.unknown_tier,
            disputed=bill.disputed,
            claimed_pusd=bill.claimed_pusd,
            partly_read=bill.partly_read,
            partly_priced=bill.partly_priced,
            unseen=bill.unseen,
            plausible_pusd=bill.plausible_pusd,
            legs=bill.legs,
        )
        attempt.settled, attempt.booked, attempt.record = True, tokens, record
        attempt.tokens = prompt_tokens(tokens) + tokens.output
        return record

    def _finish(self, attempt: Attempt, outcome: AttemptOutcome, record: AttemptSettled) -> None:
        """Release the holds and learn, once the record is written.

        An earlier release could lend the money twice if the worker died in between, since the books
        count such an attempt at its bound.
        """
        if attempt.holds:
            self._admission.release(attempt.id, record.cost_pusd or 0)
        self._learn(attempt, outcome, record)

    def _slo_met(
        self, attempt: Attempt, outcome: AttemptOutcome, tokens: TokenCounts
    ) -> bool | None:
        """Return whether the client got the policy's SLO; None without an SLO or a measurement."""
        slo = attempt.plan.policy.slo
        if (slo.ttft_ms is None and slo.tpot_ms is None) or outcome.status == "client_gone":
            return None
        if outcome.status != "finished":
            return False
        if not attempt.plan.asked.stream:
            return self._whole_met(attempt, tokens)
        ttft_s, tpot_s = _ttft_s(attempt), self._tpot_s(attempt, tokens)
        if ttft_s is None:
            return None
        if slo.ttft_ms is not None and (attempt.waited_s + ttft_s) * 1e3 > slo.ttft_ms:
            return False
        return slo.tpot_ms is None or tpot_s is None or tpot_s * 1e3 <= slo.tpot_ms

    def _whole_met(self, attempt: Attempt, tokens: TokenCounts) -> bool | None:
        """Return whether an answer in one piece took no longer than its stream might have."""
        slo = attempt.plan.policy.slo
        request = attempt.plan.request
        further = max(0.0, tokens.output / request.n - 1)
        if not KIND_TRAITS[request.kind].decoded:
            further = 0.0
        if slo.ttft_ms is None or (slo.tpot_ms is None and further):
            return None
        allowed_ms = slo.ttft_ms + (slo.tpot_ms or 0.0) * further
        took_s = attempt.waited_s + self._clock.now_s() - attempt.dispatched_s
        return took_s * 1e3 <= allowed_ms

    def _tpot_s(self, attempt: Attempt, tokens: TokenCounts) -> float | None:
        request = attempt.plan.request
        if not attempt.plan.asked.stream or not KIND_TRAITS[request.kind].decoded:
            return None
        first, last = attempt.first_token_s, attempt.last_token_s
        per_choice = tokens.output / request.n
        if first is None or last is None or per_choice < 2:
            return None
        return (last - first) / (per_choice - 1)

    def _learn(self, attempt: Attempt, outcome: AttemptOutcome, record: AttemptSettled) -> None:
        plan, target, tokens = attempt.plan, attempt.step.frozen.target, record.tokens
        found = self._learner.learn(attempt, outcome, record)
        if found is not None:
            self._calibrate(attempt, record, prompt=found[0], choice=found[1])
            if not target.own:
                self._learner.learn_unseen(attempt, outcome, record)
        if not target.own:
            self._learner.learn_cached(attempt, record, reported=found is not None)
        if plan.comparators and plan.request.beginning.marks:
            self._learner.learn_elsewhere(attempt, reported=found is not None)
        if attempt.story is not None:
            attempt.story.on_settled(record)
        well = did_well(attempt, outcome)
        suspect = plan.identity.key_id if outcome.error in MAY_BE_THE_REQUEST else None
        if target.own:
            _feed_back(attempt, tokens)
            if well is not None:
                self._experience.engine(target.row, ok=well, suspect=suspect)
        elif well is not None:
            self._experience.api(
                target.row,
                ttft_s=None if record.ttft_us is None else record.ttft_us / 1e6,
                tpot_s=self._tpot_s(attempt, tokens),
                ok=well,
                suspect=suspect,
            )
            if record.ttft_us is not None:
                self._metrics.count_observation(LATENCY, None)
        self._count(attempt, outcome, record)

    def _calibrate(
        self, attempt: Attempt, record: AttemptSettled, *, prompt: int, choice: int
    ) -> None:
        """Record the decision's estimates together with the measured values."""
        request, verdict = attempt.plan.request, attempt.step.verdict
        note, backend = self._metrics.calibration.note, _backend(attempt)
        note(EstimatorName.PROMPT_TOKENS, backend, request.prompt_tokens, prompt)
        if KIND_TRAITS[request.kind].decoded:
            most, mean = request.max_tokens, request.output.mean
            expected = mean if most is None else min(mean, most)
            note(EstimatorName.OUTPUT_TOKENS, backend, expected, choice)
        if record.ttft_us is not None and verdict.ttft_ms is not None:
            note(EstimatorName.TTFT_S, backend, verdict.ttft_ms / 1e3, record.ttft_us / 1e6)
        tpot_s = self._tpot_s(attempt, record.tokens)
        if tpot_s is not None and verdict.tpot_ms is not None:
            note(EstimatorName.TPOT_S, backend, verdict.tpot_ms / 1e3, tpot_s)

    def _count(self, attempt: Attempt, outcome: AttemptOutcome, record: AttemptSettled) -> None:
        metrics, target, tokens = self._metrics, attempt.step.frozen.target, record.tokens
        if (hangup := hangup_of(outcome, unseen=record.unseen)) is not None:
            metrics.count_hangup(hangup)
        tally = metrics.sums_of(
            AttemptLabels(
                attempt.plan.model,
                target.name,
                _backend(attempt),
                str(attempt.step.verdict.reason),
                outcome.status,
                record.slo_met,
                attempt.spill_reason,
            )
        )
        for finding in usage_findings(record):
            metrics.count_usage_finding(target.name, finding)
        metrics.count_legs(record.legs)
        tally.attempts += 1
        if KINDS[attempt.plan.request.kind].ranked:
            tally.ranked += tokens.input
        else:
            tally.input += tokens.input
        tally.cached += tokens.cached
        tally.output += tokens.output
        tally.cost_pusd += record.cost_pusd or 0
        ttft_s = None if record.ttft_us is None else record.ttft_us / 1e6
        metrics.observe_attempt(target.name, record.duration_us / 1e6, ttft_s)
        if ttft_s is not None:
            tpot_s = self._tpot_s(attempt, tokens)
            metrics.observe_pace(target.name, tpot_s, attempt.gaps, attempt.decode_s)


def opened_record(attempt: Attempt, opened_us: int) -> AttemptOpened:
    """Return the journal record that opens an attempt, written before the dispatch."""
    plan, step = attempt.plan, attempt.step
    target, verdict, who = step.frozen.target, step.verdict, plan.identity
    best = plan.best_own
    return AttemptOpened(
        attempt_id=attempt.id,
        request_id=plan.request_id,
        attempt_no=attempt.number,
        opened_us=opened_us,
        key_id=who.key_id,
        user_id=who.user_id,
        team_id=who.team_id,
        org_id=who.org_id,
        kind=str(plan.asked.kind),
        stream=plan.asked.stream,
        model=plan.model,
        target=target.name,
        backend="own" if target.own else "api",
        pool=target.pool,
        engine=target.replica,
        provider=target.provider,
        upstream_model=target.upstream_model,
        simulated=target.simulated,
        policy=plan.policy.name,
        policy_version=plan.policy_version,
        reason=str(verdict.reason),
        spill_reason=None if target.own or best is None else str(best.reason),
        price_version=None if step.frozen.price is None else step.frozen.price.version,
        bound_pusd=verdict.candidate.bound_pusd or 0,
        prompt_tokens_estimate=plan.request.prompt_tokens,
        ttft_predicted_us=None if verdict.ttft_ms is None else round(verdict.ttft_ms * 1e3),
        kv_headroom_ppm=None
        if best is None or best.kv_ratio is None
        else round((1.0 - best.kv_ratio) * 1e6),
        bid_price_pusd_per_s=round(verdict.candidate.bid_price_pusd_per_s),
        holds=attempt.holds,
        tags=tuple(who.tags),
        decision=plan.decision_blob,
        inputs=plan.inputs,
        line_us=round(plan.line_s * 1e6) if attempt.number == 1 else 0,
        counts_on=who.counts_on,
        content=None if plan.asked.content is None else plan.asked.content.row,
        **_shadow(plan),
    )


def _with_shortfall(record: RequestRefused, short: BudgetShortfall) -> RequestRefused:
    budget = short.budget
    return msgspec.structs.replace(
        record,
        scope=budget.scope,
        bound_pusd=short.bound_pusd,
        room_pusd=budget.room_pusd,
        limit_pusd=budget.limit_pusd if budget.limit_pusd < BIGINT_LIMIT else None,
        since_us=budget.since_us,
        until_us=budget.resets_at_us,
    )


def _backend(attempt: Attempt) -> str:
    return "own" if attempt.own else "api"


def _shadow(plan: RoutingPlan) -> dict[str, str | None]:
    """Return the columns of a shadow policy's decision; empty without one."""
    if plan.shadow is None:
        return {}
    chosen = plan.shadow.first_choice
    return {
        "shadow_policy": plan.shadow.policy,
        "shadow_target": None if chosen is None else chosen.candidate.name,
        "shadow_reason": plan.shadow.reason.value,
    }


def _ttft_s(attempt: Attempt) -> float | None:
    """Return the time to first token in seconds; None for an answer in one piece."""
    if attempt.first_token_s is None or not attempt.plan.asked.stream:
        return None
    return attempt.first_token_s - attempt.dispatched_s


def _feed_back(attempt: Attempt, tokens: TokenCounts) -> None:
    """Feed the observed time of a stream's decode steps back to the step model."""
    engine, flight = attempt.step.frozen.candidate.engine, attempt.flight
    first, last = attempt.first_token_s, attempt.last_token_s
    if not KIND_TRAITS[attempt.plan.request.kind].decoded:
        return
    if engine is None or engine.step is None or flight is None or first is None or last is None:
        return
    steps = tokens.output / attempt.plan.request.n - 1
    flight.record_pace(engine.step, observed_s=last - first, steps=steps)
