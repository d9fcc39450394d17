"""Plans, steps and endings with the members that traces and histograms look at."""

from types import SimpleNamespace

import pytest

from ledger.journals.records import AttemptSettled, Tokens
from router.types import Kind, Reason


@pytest.fixture
def plan():
    """`plan(model="chat")`"""

    def make(model: str = "chat", *, kind: Kind = Kind.CHAT, stream: bool = True, n: int = 1):
        return SimpleNamespace(
            model=model,
            asked=SimpleNamespace(kind=kind, stream=stream),
            identity=SimpleNamespace(team_id="search"),
            policy=SimpleNamespace(name="interactive"),
            policy_version="abc",
            request=SimpleNamespace(n=n),
            decision=SimpleNamespace(reason=Reason.CHEAPEST, verdicts=(1, 2), chosen=None),
        )

    return make


@pytest.fixture
def step():
    """`step(own=False, provider="xai")`"""

    def make(*, own: bool = True, name: str = "pool:main/0", provider: str | None = None):
        target = SimpleNamespace(own=own, name=name, provider=provider, upstream_model="m")
        verdict = SimpleNamespace(reason=Reason.CHEAPEST, ttft_ms=120.0)
        return SimpleNamespace(frozen=SimpleNamespace(target=target), verdict=verdict)

    return make


@pytest.fixture
def ending():
    def make(attempt_id: str = "req_1.1", **members) -> AttemptSettled:
        known = {
            "settled_us": 0, "status": "finished", "http_status": 200,
            "tokens": Tokens(input=30, cached=10, output=11), "basis": "reported",
            "cost_pusd": 42, "ttft_us": 100_000, "duration_us": 600_000,
        }  # fmt: skip
        return AttemptSettled(attempt_id=attempt_id, **known | members)

    return make
