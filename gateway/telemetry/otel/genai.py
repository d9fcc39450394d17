"""Histograms of the GenAI conventions for every attempt: durations and tokens."""

from opentelemetry.metrics import Histogram, Meter

from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.telemetry.otel import genai_attributes
from ledger.journals.records import AttemptSettled

# These bounds are set by the conventions, so that histograms can be added up.
DURATION_S = tuple(0.01 * 2**step for step in range(14))
TOKENS = tuple(4**power for power in range(14))
FIRST_S = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
)
PER_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)


class GenAi:
    """Histograms of one worker. Labels are configured names only: no client adds a series."""

    def __init__(self, meter: Meter, models: frozenset[str], targets: frozenset[str]) -> None:
        self._models, self._targets = models, targets
        prefix = "gen_ai.client"
        self._duration = _histogram(meter, f"{prefix}.operation.duration", "s", DURATION_S)
        self._first = _histogram(meter, f"{prefix}.operation.time_to_first_chunk", "s", FIRST_S)
        self._each = _histogram(
            meter, f"{prefix}.operation.time_per_output_chunk", "s", PER_TOKEN_S
        )
        server = "gen_ai.server.time_per_output_token"
        self._per_token = _histogram(meter, server, "s", PER_TOKEN_S)
        self._tokens = _histogram(meter, f"{prefix}.token.usage", "{token}", TOKENS)

    def record_attempt(self, plan: RoutingPlan, step: AttemptPlan, record: AttemptSettled) -> None:
        """Record an attempt that ended."""
        target = step.frozen.target
        said: dict[str, str] = {
            "gen_ai.operation.name": genai_attributes.operation(plan),
            "gen_ai.provider.name": genai_attributes.provider(target),
            "gen_ai.request.model": plan.model
            if plan.model in self._models
            else genai_attributes.OTHER,
            "breakeven.target": target.name
            if target.name in self._targets
            else genai_attributes.OTHER,
        }
        failure = genai_attributes.error_of(record)
        ended = said if failure is None else said | {"error.type": failure}
        self._duration.record(record.duration_us / 1e6, ended)
        self._tokens.record(record.tokens.prompt, said | {"gen_ai.token.type": "input"})
        self._tokens.record(record.tokens.output, said | {"gen_ai.token.type": "output"})
        if record.ttft_us is None:
            return
        self._first.record(record.ttft_us / 1e6, said)
        further = record.tokens.output - plan.request.n
        if further > 0:
            decode_s = (record.duration_us - record.ttft_us) / 1e6
            each_s = decode_s * plan.request.n / further
            self._each.record(each_s, said)
            self._per_token.record(each_s, said)


def _histogram(meter: Meter, name: str, unit: str, bounds: tuple[float, ...]) -> Histogram:
    return meter.create_histogram(name, unit, explicit_bucket_boundaries_advisory=bounds)
