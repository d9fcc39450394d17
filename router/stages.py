"""Which stage of a model's targets is asked next: by why those before did not answer. Pure.

A stage is a decision of its own (`router.decide`) on its own targets. A later one is asked once all
targets before it failed, refused or cannot serve, and only for its own cause: what kept any of the
targets before from answering. A target that was asked is not asked again by a later stage.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from router.reasons import Outlook, Reason, with_outlook
from router.types import Decision, Verdict


class StageCause(StrEnum):
    """Names what a later stage waits for, in the words of the configuration's `after`.

    Of a target also why it did not answer; `ANY` then stands for whatever has no word of its own:
    a promise, memory, money, residency that it cannot keep.
    """

    ANY = "any"
    FAILURE = "failure"
    CONTEXT = "context"
    CONTENT_POLICY = "content_policy"


class StageNote(NamedTuple):
    """Records of a decision which of several stages it is, the first being number 1.

    `after`: its causes, joined by `+`.
    `earlier`: by candidate of an earlier stage that was not asked, why not.
    """

    number: int
    stages: int
    after: str
    earlier: tuple[tuple[str, Reason], ...] = ()


_ANY, _FAILURE = StageCause.ANY, StageCause.FAILURE
# A target that is known to fail at the moment: as if it was asked once more.
_FAILING = with_outlook(Outlook.AWAY) | {Reason.RATE_LIMIT}


def cause_of(reason: Reason) -> StageCause:
    """Return the cause for which a target that a decision filtered out does not answer."""
    if reason is Reason.CONTEXT:
        return StageCause.CONTEXT
    return _FAILURE if reason in _FAILING else _ANY


def is_due(after: Collection[StageCause], causes: Collection[StageCause]) -> bool:
    """Return whether a stage's turn has come, once nobody before it answered."""
    return any(cause is _ANY or cause in causes for cause in after)


def causes_of(verdicts: Iterable[Verdict]) -> set[StageCause]:
    """Return the causes for which a decision's infeasible targets do not answer."""
    return {cause_of(verdict.reason) for verdict in verdicts if not verdict.feasible}


def rejections_of(decisions: Sequence[Decision]) -> tuple[tuple[str, Reason], ...]:
    """Return the reason for each candidate of earlier stages that was not tried."""
    return tuple(
        (verdict.candidate.name, verdict.reason)
        for decision in decisions
        for verdict in decision.verdicts
        if not verdict.feasible
    )
