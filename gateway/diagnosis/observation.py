"""Findings of `breakeven doctor`, for people and programs."""

from enum import StrEnum
from typing import NamedTuple


class DoctorVerdict(StrEnum):
    """Severity: `error` prevents a start or loses data, `warning` has a cost, `note` informs."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class DoctorFinding(NamedTuple):
    """Finding: `subject` was checked, `words` describe the result, `fix` says what to do."""

    subject: str
    verdict: DoctorVerdict
    words: str
    fix: str = ""


def fine(subject: str, words: str) -> DoctorFinding:
    return DoctorFinding(subject, DoctorVerdict.OK, words)


def noted(subject: str, words: str, fix: str = "") -> DoctorFinding:
    return DoctorFinding(subject, DoctorVerdict.NOTE, words, fix)


def warned(subject: str, words: str, fix: str) -> DoctorFinding:
    return DoctorFinding(subject, DoctorVerdict.WARNING, words, fix)


def failed(subject: str, words: str, fix: str) -> DoctorFinding:
    return DoctorFinding(subject, DoctorVerdict.ERROR, words, fix)
