"""Parts of attempts by engine, and the time that their KV took to move."""

from prometheus_client import CollectorRegistry

from gateway.telemetry.metrics.requests import RequestMetrics
from ledger.journals.records import AttemptLeg


def leg(role: str, outcome: str, transfer_us: int | None = None) -> AttemptLeg:
    engine = "pool:a/0" if role == "prefill" else "pool:a/1"
    return AttemptLeg(engine, role, 1000, 640, 2000, transfer_us, outcome)


def test_parts_and_transfers_are_counted_by_engine() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=[], targets=[])
    metrics.legs.count_legs((leg("prefill", "done"), leg("decode", "done", 250_000)))
    metrics.legs.count_legs((leg("prefill", "done"), leg("decode", "failed")))
    metrics.flush()

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    legs, answers = "breakeven_engine_legs_total", {"engine": "pool:a/1", "role": "decode"}
    assert value(legs, engine="pool:a/0", role="prefill", outcome="done") == 2
    assert value(legs, **answers, outcome="done") == 1
    assert value(legs, **answers, outcome="failed") == 1
    assert value("breakeven_kv_transfers_total", engine="pool:a/1") == 1, "nothing moved twice"
    assert value("breakeven_kv_transfer_seconds_total", engine="pool:a/1") == 0.25
    assert value("breakeven_kv_transfers_total", engine="pool:a/0") is None
