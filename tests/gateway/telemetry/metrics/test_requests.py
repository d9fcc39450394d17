"""Labels come from configuration and closed enums; a client cannot grow the page."""

from prometheus_client import CollectorRegistry, generate_latest

from gateway.request.request_counters import AttemptLabels
from gateway.telemetry.metrics.requests import RequestMetrics


def test_names_that_nobody_configured_are_other() -> None:
    metrics = RequestMetrics(CollectorRegistry(), models=["chat"], targets=["alpha/m", "alpha/*"])
    assert (metrics.model("chat"), metrics.model("made-up")) == ("chat", "other")
    assert (metrics.target("alpha/m"), metrics.target("alpha/made-up")) == ("alpha/m", "other")


def test_invented_names_add_one_series() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=["chat"], targets=["alpha/m"])
    metrics.requests.labels(metrics.model("x"), metrics.target("y"), "only", "finished").inc()
    before = generate_latest(registry).count(b"\n")
    for number in range(2000):
        labels = metrics.model(f"m{number}"), metrics.target(f"t{number}")
        metrics.requests.labels(*labels, "only", "finished").inc()
    assert generate_latest(registry).count(b"\n") == before


def test_what_the_dashboards_read_is_there() -> None:
    registry = CollectorRegistry()
    RequestMetrics(registry, models=[], targets=[])
    page = generate_latest(registry).decode()
    for name in (
        "breakeven_requests_total", "breakeven_request_duration_seconds", "breakeven_ttft_seconds",
        "breakeven_tokens_total", "breakeven_cost_usd_total", "breakeven_spill_total",
        "breakeven_refusals_total", "breakeven_slo_total", "breakeven_in_flight",
        "breakeven_tpot_seconds", "breakeven_inter_token_latency_seconds",
    ):  # fmt: skip
        assert f"# TYPE {name.removesuffix('_total')}" in page
    assert "breakeven_in_flight 0.0" in page


def test_what_is_counted_is_in_the_registry_after_a_flush_and_only_once() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=["chat"], targets=["alpha/m"])
    for _ in range(3):
        metrics.count(metrics.tokens, "input", "api", amount=7)
        metrics.count(metrics.refusals, "budget")
        metrics.observe_attempt("alpha/m", 0.3, None)
    metrics.working = 2
    for _ in range(2):
        metrics.flush()
        labels = {"kind": "input", "backend": "api"}
        assert registry.get_sample_value("breakeven_tokens_total", labels) == 21
        assert registry.get_sample_value("breakeven_refusals_total", {"reason": "budget"}) == 3
        assert registry.get_sample_value("breakeven_in_flight") == 2
        labels = {"target": "alpha/m"}
        name = "breakeven_request_duration_seconds_count"
        assert registry.get_sample_value(name, labels) == 3


def test_attempts_that_ended_alike_are_counted_together() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=["chat"], targets=["alpha/m"])
    spilt = AttemptLabels("chat", "alpha/m", "api", "cheapest", "finished", True, "ttft")
    failed = AttemptLabels("made-up", "pool:x/0", "own", "only", "timeout", None, None)
    for ended in (spilt, spilt, failed):
        tally = metrics.sums_of(ended)
        tally.attempts += 1
        tally.output += 5
        tally.cost_pusd += 10**12
    for _ in range(2):
        metrics.flush()
        sums = {
            sample.name + "/" + ",".join(sample.labels.values()): sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name.endswith("_total") and sample.value
        }
        assert sums == {
            "breakeven_requests_total/chat,alpha/m,cheapest,finished": 2,
            "breakeven_requests_total/other,other,only,timeout": 1,
            "breakeven_tokens_total/output,api": 10,
            "breakeven_tokens_total/output,own": 5,
            "breakeven_cost_usd_total/api": 2,
            "breakeven_cost_usd_total/own": 1,
            "breakeven_slo_total/api,yes": 2,
            "breakeven_spill_total/ttft": 2,
        }


def test_a_flush_tells_whether_a_request_works_or_has_ended() -> None:
    """The worker's beat is slow while none does, and the gauge is not written in vain."""
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=[], targets=[])
    assert not metrics.flush()
    metrics.working = 2
    assert metrics.flush()
    assert registry.get_sample_value("breakeven_in_flight") == 2.0
    metrics.working = 0
    assert not metrics.flush()
    assert registry.get_sample_value("breakeven_in_flight") == 0.0
    written: list[float] = []
    metrics.in_flight.set = written.append  # type: ignore[method-assign]
    assert not metrics.flush()
    assert written == []
