"""Metrics of what policies say beside whom they choose; labels are names of the policy file."""

from prometheus_client import CollectorRegistry, Counter


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
