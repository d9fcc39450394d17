"""Engine samples as an operator's overrides make them, before they are stored."""

from collections.abc import Sequence
from dataclasses import replace

from backends.health import HealthState
from gateway.policies.overrides import is_disabled
from ledger.fleet.samples import FleetSample
from ledger.overrides import Override


def apply_overrides(row: FleetSample, known: Sequence[Override]) -> FleetSample:
    """An engine that an operator keeps requests from is drained, however well it is.

    Its time is unavailable in the books, not idle: nobody could have used it.
    """
    taken_out = row.health == HealthState.HEALTHY.value and is_disabled(row.engine, known)
    return replace(row, health=HealthState.DRAINING.value) if taken_out else row
