"""Resets of learned estimates, stored in the append-only list of overrides.

An operator's reset has author, time and note, and is in the audit log like every override. Each
worker of each host reads it within seconds and forgets the named estimates; a worker that starts
later reads it then. A reset is never in force, so lists of active overrides do not show it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Engine

from gateway.control.override_changes import OverrideAuthor
from ledger.overrides import Override, store_override

SUBJECT = "estimates:"
TARGET_SUBJECT = "target-estimates:"  # separate, so that older gateways ignore it
RESET = "reset"


class EstimateReset(NamedTuple):
    """A reset of estimates of a model, of a team, or of both (`None`: all).

    With `target`, the estimates of that target are reset instead.
    """

    number: int
    model: str | None
    team: str | None
    at_us: int
    target: str | None = None

    @property
    def of_texts(self) -> bool:
        """Return whether it resets estimates of models and teams."""
        return self.target is None

    @property
    def of_targets(self) -> bool:
        """Return whether it resets estimates of targets: one, or all with a full reset."""
        return self.target is not None or (self.model is None and self.team is None)

    def covers(self, model: str, team: str) -> bool:
        return self.of_texts and self.model in (None, model) and self.team in (None, team)


def store_reset(
    engine: Engine,
    author: OverrideAuthor,
    *,
    model: str | None,
    team: str | None,
    target: str | None = None,
) -> Override:
    """Store a reset; gateways apply it when they read the overrides.

    With `target`, only the estimates of that target are reset.
    """
    subject = SUBJECT + msgspec.json.encode((model, team)).decode()
    if target is not None:
        subject = TARGET_SUBJECT + target
    given = Override(0, subject, RESET, author.at_us, author.at_us, author.by, author.note)
    return store_override(engine, given)


def resets_of(overrides: Sequence[Override], after: int = 0) -> list[EstimateReset]:
    """Return the resets with a number above `after`, in order."""
    found = []
    for override in overrides:
        if override.number <= after:
            continue
        if override.subject.startswith(TARGET_SUBJECT):
            target = override.subject.removeprefix(TARGET_SUBJECT)
            found.append(EstimateReset(override.number, None, None, override.recorded_us, target))
        elif override.subject.startswith(SUBJECT):
            names = override.subject.removeprefix(SUBJECT)
            model, team = msgspec.json.decode(names, type=tuple[str | None, str | None])
            found.append(EstimateReset(override.number, model, team, override.recorded_us))
    return found
