"""Interface by which the request path counts; `gateway.telemetry.metrics` implements it.

The request path writes to these methods alone, so that it imports no Prometheus types.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from gateway.fleet.estimator_accuracy import EstimatorAccuracy
from ledger.journals.records import AttemptLeg
from router.estimator_rules import Objection

HangupEnd = Literal["aborted", "read_to_end", "unseen"]


class AttemptLabels(NamedTuple):
    """Labels shared by attempts that are counted together; names are as clients sent them."""

    model: str
    target: str
    backend: str
    reason: str
    status: str
    slo_met: bool | None
    spill: str | None


@dataclass(slots=True)
class AttemptSums:
    """Sums over the attempts of one set of labels: tokens, and pico-USD of cost."""

    attempts: int = 0
    input: int = 0
    ranked: int = 0  # input tokens of rerankings, whose documents are no prompts
    cached: int = 0
    output: int = 0
    cost_pusd: int = 0


class QueueCounters(Protocol):
    """Counts of the admission queue; implemented by `PolicyMetrics`."""

    def set_queue_length(self, requests: int) -> None:
        """Publish how many requests of this worker wait."""

    def observe_queue_wait(self, ended: str, wait_s: float) -> None:
        """Count one wait by how it ended."""


class RequestCounters(Protocol):
    """Counts of the request path; implemented by `gateway.telemetry.metrics.requests`."""

    @property
    def calibration(self) -> EstimatorAccuracy:
        """Return the record of predicted and observed values, by estimator."""

    def count_refusal(self, reason: str) -> None:
        """Count one refused request."""

    def count_hangup(self, ended: HangupEnd) -> None:
        """Count one attempt whose client disconnected, by the end of its answer."""

    def count_static_decision(self, cause: str, decisions: int = 1) -> None:
        """Count decisions by the configured order; 0 only creates the series."""

    def count_undecided(self, policy: str) -> None:
        """Count one request for which a policy's condition had no answer."""

    def count_usage_finding(self, target: str, finding: str) -> None:
        """Count one attempt whose usage is disputed, above its hold, or partly read."""

    def count_legs(self, legs: Iterable[AttemptLeg]) -> None:
        """Count the parts of an attempt that took two engines; without parts, count nothing."""

    def count_shadow(self, policy: str, *, agrees: bool) -> None:
        """Count one request that a shadow policy decided, too."""

    def sums_of(self, labels: AttemptLabels) -> AttemptSums:
        """Return the sums to which an attempt adds its own; the next flush publishes them."""

    def count_observation(self, estimator: str, objection: Objection | None) -> None:
        """Count one value offered to an estimator, and the objection if it was not learned.

        An attempt's usage is counted once, as `bytes_per_token`, although output lengths learn from
        it, too.
        """

    def observe_attempt(self, target: str, duration_s: float, ttft_s: float | None) -> None:
        """Count one attempt's duration and, if a token came, its time to first token."""

    def observe_pace(
        self, target: str, tpot_s: float | None, gaps: Sequence[int] | None, decode_s: float
    ) -> None:
        """Count a streamed attempt's time per token and its gaps, which add up to `decode_s`."""
