"""Resets of learned estimates: orders in the append-only list of overrides, over at once.

An operator's order is kept with who, when and why, and enters the audit log as every override does.
Each worker of each host reads it within seconds and forgets what it names; one that was stopped
reads it when it starts. An order never stands, so no list of what is held over policies shows it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Engine

from gateway.control.override_changes import OverrideAuthor
from ledger.overrides import Override, store_override

SUBJECT = "estimates:"
TARGET_SUBJECT = "target-estimates:"  # of its own, so that older gateways pass it over
RESET = "reset"


class EstimateReset(NamedTuple):
    """Forget what was learned of a model, of a team, or of both; None: of all.

    Where `target` is given, what was learned of that target instead.
    """

    number: int
    model: str | None
    team: str | None
    at_us: int
    target: str | None = None

    @property
    def of_texts(self) -> bool:
        """Whether it is about models and teams."""
        return self.target is None

    @property
    def of_targets(self) -> bool:
        """Whether it is about targets: one, or, as of everything, all."""
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
    """Order it, of a target alone where one is given; who follows the overrides carries it out."""
    subject = SUBJECT + msgspec.json.encode((model, team)).decode()
    if target is not None:
        subject = TARGET_SUBJECT + target
    given = Override(0, subject, RESET, author.at_us, author.at_us, author.by, author.note)
    return store_override(engine, given)


def resets_of(overrides: Sequence[Override], after: int = 0) -> list[EstimateReset]:
    """The orders among them with a higher number, in their order."""
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
