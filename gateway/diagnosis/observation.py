"""The findings of one look of `breakeven doctor`, for people and for programs."""

from enum import StrEnum
from typing import NamedTuple


class DoctorVerdict(StrEnum):
    """The severity: `error` stops a start or loses data, `warning` costs, `note` informs."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class DoctorFinding(NamedTuple):
    """`subject` is what was looked at, `words` what was seen, `fix` what to do about it."""

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
