"""Requests and answers of Presidio's analyzer (`POST /analyze`): finds of each text.

It gets `{"text": [...], "language", "score_threshold"}` and answers a list for each text, of
objects with `entity_type`, `start`, `end` and `score` (Presidio 2.2, `presidio-analyzer/app.py`).
It says where finds are and rewrites nothing, so what a policy would mask stays inside.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec


class PresidioFind(msgspec.Struct, frozen=True):
    """One find: places in characters of its text."""

    entity_type: str
    start: int
    end: int
    score: float


def presidio_ask(texts: Sequence[str], language: str, least_score: float) -> dict[str, Any]:
    """Return what the analyzer is sent; it refuses an empty list."""
    return {"text": list(texts), "language": language, "score_threshold": least_score}


def presidio_found(answer: bytes, texts: Sequence[str], least_score: float) -> dict[str, int]:
    """Return how much of each entity it found. Raises `ValueError` where it is no such answer."""
    said = msgspec.json.decode(answer, type=list[list[PresidioFind]])
    if len(said) != len(texts):
        raise ValueError(f"{len(said)} answers for {len(texts)} texts")
    found: Counter[str] = Counter()
    for text, finds in zip(texts, said, strict=True):
        for find in finds:
            if not 0 <= find.start < find.end <= len(text):
                raise ValueError("a find is outside of its text")
            if find.score >= least_score:
                found[find.entity_type.lower()] += 1
    return dict(found)
