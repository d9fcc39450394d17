"""Operator overrides applied to engine samples before they are stored."""

from collections.abc import Sequence
from dataclasses import replace

from backends.health import HealthState
from gateway.policies.overrides import is_disabled
from ledger.fleet.samples import FleetSample
from ledger.overrides import Override


def apply_overrides(row: FleetSample, known: Sequence[Override]) -> FleetSample:
    """Return a sample marked as draining if an operator disabled its engine.

    The time is then unavailable in the ledger, not idle, because no request could use it.
    """
    taken_out = row.health == HealthState.HEALTHY.value and is_disabled(row.engine, known)
    return replace(row, health=HealthState.DRAINING.value) if taken_out else row
