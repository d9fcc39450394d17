"""A healthy engine that an operator disabled is stored as draining; another one as it is."""

import pytest

from backends.health import HealthState
from gateway.host import operated_samples
from ledger.fleet.samples import FleetSample


@pytest.mark.parametrize(
    ("health", "disabled", "stored"),
    [("healthy", True, "draining"), ("healthy", False, "healthy"), ("down", True, "down")],
)
def test_what_nobody_could_use_is_drained(
    monkeypatch, health: str, disabled: bool, stored: str
) -> None:
    monkeypatch.setattr(operated_samples, "is_disabled", lambda *_: disabled)
    names = dict.fromkeys(FleetSample.__dataclass_fields__)
    sample = FleetSample(**{**names, "engine": "pool:a/0", "health": HealthState(health).value})
    assert operated_samples.apply_overrides(sample, []).health == stored
