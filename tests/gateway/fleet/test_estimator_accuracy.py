"""Each estimator's account: sums by estimate and backend, kept until they are flushed."""

from math import inf, nan

from prometheus_client import CollectorRegistry

from gateway.fleet.estimator_accuracy import EstimatorAccuracy, EstimatorName


def test_errors_add_up_whichever_way_they_point() -> None:
    registry = CollectorRegistry()
    calibration = EstimatorAccuracy(registry)
    for predicted, observed in ((10.0, 12.0), (10.0, 7.0), (inf, 1.0), (nan, 1.0)):
        calibration.note(EstimatorName.OUTPUT_TOKENS, "own", predicted, observed)

    def shown() -> list[float | None]:
        labels = {"estimate": "output_tokens", "backend": "own"}
        names = ("_predicted", "_observed", "_error", "s")
        return [registry.get_sample_value(f"breakeven_estimate{n}_total", labels) for n in names]

    assert shown() == [None] * 4
    calibration.flush()
    calibration.flush()
    assert shown() == [20.0, 19.0, 5.0, 2.0]
