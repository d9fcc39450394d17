"""Stages of a model's targets: which one is tried next, by why earlier ones failed. Pure.

A stage is a separate decision (`router.decide`) on its own targets. A later stage is tried once all
earlier targets failed, refused or cannot serve, and only for its configured causes. A target that
was tried is not tried again by a later stage.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from router.reasons import Outlook, Reason, with_outlook
from router.types import Decision, Verdict


class StageCause(StrEnum):
    """Cause that a later stage waits for, with the values of the configuration's `after`.

    For a target, the cause is why it did not answer; `ANY` then covers everything without its own
    value: a promise, memory, money or residency that it cannot keep.
    """

    ANY = "any"
    FAILURE = "failure"
    CONTEXT = "context"
    CONTENT_POLICY = "content_policy"


class StageNote(NamedTuple):
    """Position of a decision among several stages; the first stage has number 1.

    `after` is its causes, joined by `+`. `earlier` has the candidates of earlier stages that were
    not tried, each with the reason.
    """

    number: int
    stages: int
    after: str
    earlier: tuple[tuple[str, Reason], ...] = ()


_ANY, _FAILURE = StageCause.ANY, StageCause.FAILURE
# Targets known to fail now count as failed, as if they had been tried.
_FAILING = with_outlook(Outlook.AWAY) | {Reason.RATE_LIMIT}


def cause_of(reason: Reason) -> StageCause:
    """Return the cause that corresponds to the reason for which a target was filtered out."""
    if reason is Reason.CONTEXT:
        return StageCause.CONTEXT
    return _FAILURE if reason in _FAILING else _ANY


def is_due(after: Collection[StageCause], causes: Collection[StageCause]) -> bool:
    """Return whether a stage is next, given the causes for which earlier targets failed."""
    return any(cause is _ANY or cause in causes for cause in after)


def causes_of(verdicts: Iterable[Verdict]) -> set[StageCause]:
    """Return the causes for which the infeasible targets of a decision do not answer."""
    return {cause_of(verdict.reason) for verdict in verdicts if not verdict.feasible}


def rejections_of(decisions: Sequence[Decision]) -> tuple[tuple[str, Reason], ...]:
    """Return each candidate of earlier stages that was not tried, with the reason."""
    return tuple(
        (verdict.candidate.name, verdict.reason)
        for decision in decisions
        for verdict in decision.verdicts
        if not verdict.feasible
    )
