"""Metrics of shadow policies, undecided conditions, content finds and queues.

Labels are names of the policy file, and the ways in which waiting ends.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

WAITS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class PolicyMetrics:
    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.shadows = Counter(
            "breakeven_shadow_decisions",
            "Requests that a shadow policy decided too, and whether it chose the same target",
            ("policy", "agrees"),
            registry=registry,
        )
        self.undecided = Counter(
            "breakeven_policy_undecided",
            "Requests of which a policy's condition could not be told",
            ("policy",),
            registry=registry,
        )
        self.static = Counter(
            "breakeven_static_decisions",
            "Decisions by the configured order, because telemetry was silent or deciding failed",
            ("cause",),
            registry=registry,
        )
        self.content = Counter(
            "breakeven_content_finds",
            "Finds of content in requests and answers, by kind and what was done",
            ("kind", "action"),
            registry=registry,
        )
        self.detectors = Counter(
            "breakeven_content_failures",
            "Requests of which a detector of content could not tell, so that they were kept inside",
            ("detector",),
            registry=registry,
        )
        self.length = Gauge(
            "breakeven_queue_length",
            "Requests that wait for room under a policy that queues",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.length.set(0)  # requests queued in a killed predecessor are gone
        self.waits = Histogram(
            "breakeven_queue_wait_seconds",
            "How long requests waited for room, and how that ended",
            ("ended",),
            buckets=WAITS_S,
            registry=registry,
        )

    def set_queue_length(self, requests: int) -> None:
        self.length.set(requests)

    def observe_queue_wait(self, ended: str, wait_s: float) -> None:
        self.waits.labels(ended).observe(wait_s)
