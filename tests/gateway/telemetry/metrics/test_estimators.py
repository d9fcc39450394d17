"""What estimators were offered and what they know is told, without a series for a team."""

from prometheus_client import CollectorRegistry, generate_latest

from gateway.telemetry.metrics.estimators import EstimatorMetrics
from gateway.telemetry.metrics.requests import RequestMetrics
from router.estimator_rules import Estimator, Objection

RATIO = Estimator.BYTES_PER_TOKEN


def test_observations_are_counted_with_the_next_flush() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=(), targets=())
    for objection in (None, None, Objection.MEDIA, Objection.DISPUTED):
        metrics.count_observation(RATIO.value, objection)
    metrics.count_observation(Estimator.API_LATENCY.value, None)
    for _ in range(2):
        metrics.flush()
    shown = generate_latest(registry).decode()
    name = "breakeven_estimator"
    for estimator in ("bytes_per_token", "output_tokens"):  # of one attempt both learn
        assert f'{name}_observations_total{{estimator="{estimator}"}} 4.0' in shown
        assert f'{name}_rejected_total{{estimator="{estimator}",reason="disputed"}} 1.0' in shown
    assert f'{name}_observations_total{{estimator="api_latency"}} 1.0' in shown
    assert f'{name}_rejected_total{{estimator="bytes_per_token",reason="media"}} 1.0' in shown
    assert f'{name}_rejected_total{{estimator="output_tokens",reason="media"}}' not in shown


def test_values_are_those_of_the_moment_of_the_look() -> None:
    registry, values = CollectorRegistry(), {(RATIO, "median"): 4.0}
    metrics = EstimatorMetrics(registry)
    metrics.watch(lambda: values)
    for median in (4.0, 3.0):
        values[RATIO, "median"] = median
        metrics.look()
        shown = generate_latest(registry).decode()
        line = 'breakeven_estimator_value{estimator="bytes_per_token",statistic="median"}'
        assert f"{line} {median}" in shown
