"""Prometheus metrics of the request path, with closed label sets.

Label values come from configuration and closed enums; others become `other`, so a client cannot
grow `/metrics`. In multiprocess mode the files are keyed by worker index, not by process id: a
restarted worker continues its predecessor's counters, and no stale file remains.

Counts stay in memory and go to the files with `flush`, several times a second and before this
worker renders `/metrics`: a file write per request would cost more than the rest of metering.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.fleet.estimator_accuracy import EstimatorAccuracy
from gateway.request.request_counters import AttemptLabels, AttemptSums, HangupEnd
from gateway.telemetry.metrics.estimators import EstimatorMetrics
from gateway.telemetry.metrics.legs import LegMetrics
from gateway.telemetry.metrics.pace import PaceMetrics
from gateway.telemetry.metrics.policies import PolicyMetrics
from gateway.telemetry.metrics.target_histogram import TargetHistogram
from ledger.journals.records import AttemptLeg
from router.estimator_rules import Objection

LATENCY_BUCKETS_S = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60)
OTHER = "other"
JOURNAL_WAYS = ("kernel", "thread", "calls")


class RequestMetrics:
    def __init__(
        self,
        registry: CollectorRegistry | None,
        *,
        models: Collection[str],
        targets: Collection[str],
    ) -> None:
        self._models, self._targets = frozenset(models), frozenset(targets)
        self.requests = Counter(
            "breakeven_requests",
            "Attempts by logical model, target, reason of the choice and outcome",
            ("model", "target", "reason", "status"),
            registry=registry,
        )
        self._duration = TargetHistogram(
            "breakeven_request_duration_seconds",
            "From dispatch to the last byte of an attempt",
            LATENCY_BUCKETS_S,
            registry,
        )
        self._ttft = TargetHistogram(
            "breakeven_ttft_seconds",
            "From dispatch to the first token of an attempt",
            LATENCY_BUCKETS_S,
            registry,
        )
        self.tokens = Counter(
            "breakeven_tokens",
            "Tokens by kind and backend",
            ("kind", "backend"),
            registry=registry,
        )
        self.cost = Counter(
            "breakeven_cost_usd",
            "Dollars charged (own engines: provisional); the ledger is exact, this is a float",
            ("backend",),
            registry=registry,
        )
        self.spill = Counter(
            "breakeven_spill",
            "Requests of models with own engines that an API served, by reason",
            ("reason",),
            registry=registry,
        )
        self.refusals = Counter(
            "breakeven_refusals", "Requests refused, by reason", ("reason",), registry=registry
        )
        self.slo = Counter(
            "breakeven_slo",
            "Finished requests by backend and whether they met their SLO",
            ("backend", "met"),
            registry=registry,
        )
        self.pace, self.policies = PaceMetrics(registry), PolicyMetrics(registry)
        self.calibration, self.estimators = EstimatorAccuracy(registry), EstimatorMetrics(registry)
        self.hangups, self.usage_findings = _hangups(registry), _usage_findings(registry)
        self.in_flight = _in_flight(registry)
        self.journal_writes = _journal_writes(registry)
        self.endings_waiting, self.endings_lost = _endings(registry)
        self.working = 0
        self._told_working = -1  # value in the registry; a predecessor may have left another
        self._counted: dict[tuple[Counter, tuple[str, ...]], float] = {}
        self._ended: dict[AttemptLabels, AttemptSums] = {}
        self.legs = LegMetrics(registry, self.count)
        self._create_series()

    def _create_series(self) -> None:
        """Create the series of alerts: Prometheus sees no increase when a series appears."""
        self.refusals.labels("budget")
        self.endings_waiting.set(0)  # those of a predecessor are gone
        for way in JOURNAL_WAYS:
            self.journal_writes.labels(way).set(0)  # a predecessor may have used another way
        for target in (*self._targets, OTHER):
            for finding in ("disputed", "over_bound"):
                self.usage_findings.labels(target, finding)
        for ended in get_args(HangupEnd):
            self.hangups.labels(ended)
        for backend in ("own", "api"):
            for met in ("yes", "no"):
                self.slo.labels(backend, met)

    def count(self, counter: Counter, *labels: str, amount: float = 1.0) -> None:
        key = (counter, labels)
        self._counted[key] = self._counted.get(key, 0.0) + amount

    def count_refusal(self, reason: str) -> None:
        self.count(self.refusals, reason)

    def count_hangup(self, ended: HangupEnd) -> None:
        self.count(self.hangups, ended)

    def count_static_decision(self, cause: str, decisions: int = 1) -> None:
        self.count(self.policies.static, cause, amount=decisions)

    def count_content(self, kind: str, action: str, count: int) -> None:
        self.count(self.policies.content, kind, action, amount=count)

    def count_detector_failure(self, detector: str) -> None:
        self.count(self.policies.detectors, detector)

    def count_undecided(self, policy: str) -> None:
        self.count(self.policies.undecided, policy)

    def count_usage_finding(self, target: str, finding: str) -> None:
        self.count(self.usage_findings, self.target(target), finding)

    def count_legs(self, legs: Iterable[AttemptLeg]) -> None:
        self.legs.count_legs(legs)

    def count_shadow(self, policy: str, *, agrees: bool) -> None:
        self.count(self.policies.shadows, policy, "yes" if agrees else "no")

    def count_observation(self, estimator: str, objection: Objection | None) -> None:
        self.estimators.count(estimator, objection)

    def sums_of(self, labels: AttemptLabels) -> AttemptSums:
        sums = self._ended.get(labels)
        if sums is None:
            sums = self._ended[labels] = AttemptSums()
        return sums

    def observe_attempt(self, target: str, duration_s: float, ttft_s: float | None) -> None:
        name = self.target(target)
        self._duration.observe(name, duration_s)
        if ttft_s is not None:
            self._ttft.observe(name, ttft_s)

    def observe_pace(
        self, target: str, tpot_s: float | None, gaps: Sequence[int] | None, decode_s: float
    ) -> None:
        self.pace.observe_attempt(self.target(target), tpot_s, gaps, decode_s)

    def flush(self) -> bool:
        """Move counts into the registry. Return whether a request is open or has ended."""
        every, self._ended = self._ended, {}
        for ended, tally in every.items():
            self._count_ended(ended, tally)
        self.calibration.flush()
        self.estimators.flush()
        self.pace.flush()
        self._duration.flush()
        self._ttft.flush()
        counted, self._counted = self._counted, {}
        for (counter, labels), amount in counted.items():
            counter.labels(*labels).inc(amount)
        if self.working != self._told_working:
            self.in_flight.set(self.working)
            self._told_working = self.working
        return bool(every or self.working)

    def _count_ended(self, ended: AttemptLabels, tally: AttemptSums) -> None:
        model, target, backend = self.model(ended.model), self.target(ended.target), ended.backend
        self.count(self.requests, model, target, ended.reason, ended.status, amount=tally.attempts)
        for kind in ("input", "ranked", "cached", "output"):
            if tokens := getattr(tally, kind):
                self.count(self.tokens, kind, backend, amount=tokens)
        if tally.cost_pusd:
            self.count(self.cost, backend, amount=tally.cost_pusd / 1e12)
        if ended.slo_met is not None:
            self.count(self.slo, backend, "yes" if ended.slo_met else "no", amount=tally.attempts)
        if ended.spill is not None:
            self.count(self.spill, ended.spill, amount=tally.attempts)

    def model(self, name: str) -> str:
        return name if name in self._models else OTHER

    def target(self, name: str) -> str:
        return name if name in self._targets else OTHER


def _in_flight(registry: CollectorRegistry | None) -> Gauge:
    in_flight = Gauge(
        "breakeven_in_flight",
        "Requests being worked on",
        registry=registry,
        multiprocess_mode="livesum",
    )
    in_flight.set(0)  # requests of a killed predecessor have ended
    return in_flight


def _usage_findings(registry: CollectorRegistry | None) -> Counter:
    return Counter(
        "breakeven_usage_findings",
        "Attempts whose reported usage cannot be (disputed), costs more than was held "
        "(over_bound), or has counts that nobody here knows (partly_read)",
        ("target", "finding"),
        registry=registry,
    )


def _journal_writes(registry: CollectorRegistry | None) -> Gauge:
    return Gauge(
        "breakeven_journal_writes",
        "Workers by who brings their records to the disk: kernel, thread, or calls of the loop",
        ("way",),
        registry=registry,
        multiprocess_mode="livesum",
    )


def _endings(registry: CollectorRegistry | None) -> tuple[Gauge, Counter]:
    """Return the metrics of attempt ends that wait for disk space."""
    waiting = Gauge(
        "breakeven_journal_endings_waiting",
        "Ends of attempts that wait in memory for room on the disk; no new work is taken meanwhile",
        registry=registry,
        multiprocess_mode="livesum",
    )
    lost = Counter(
        "breakeven_journal_endings_lost",
        "Ends of attempts that were given up because too many waited; booked as after a death",
        registry=registry,
    )
    return waiting, lost


def _hangups(registry: CollectorRegistry | None) -> Counter:
    return Counter(
        "breakeven_hangups",
        "Attempts whose clients left before the end: aborted, read to the end for their usage, "
        "or booked at their bound because their usage is unseen",
        ("ended",),
        registry=registry,
    )
