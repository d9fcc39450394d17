"""Recorded decision as a table: each target with reason and forecast.

The record is written by `router.packed`. The dashboard imports nothing of the router, so the
positions of three figures are repeated here; a test compares them with the router's decoder.
"""

from math import isfinite
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec

from dashboard import formatting
from ledger.reasons import REASONS

VERSION: Final = 4  # of the record; other versions are rejected
_VERDICTS: Final = 7  # index of the candidates in the record
_OMITTED: Final = 6
_WORDS: Final = tuple(REASONS)  # a record stores a reason's index in the file


class _Places(NamedTuple):
    """Indexes of a candidate's figures, which are 32-bit floats."""

    ttft_ms: int
    tpot_ms: int
    objective_pusd: int


_BY_COUNT: Final = {  # by number of figures
    17: _Places(10, 11, 16),  # an own engine that was forecast
    4: _Places(0, 1, 3),  # an API
    6: _Places(0, 1, 3),  # an API with a part of the prompt in its cache
}


class CandidateView(NamedTuple):
    """One target as the decision saw it; `None` without a forecast."""

    name: str
    reason: str
    feasible: bool
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    objective_pusd: float | None = None


def candidates(blob: bytes) -> list[CandidateView]:
    """Return the targets in order of the decision. Raises `ValueError` for another version."""
    packed = msgspec.msgpack.decode(blob)
    if not packed or packed[0] != VERSION:
        raise ValueError("the record of this decision has another version")
    return [
        CandidateView(name, _WORDS[place], feasible, *_figures(figures))
        for name, place, feasible, figures, *_ in packed[_VERDICTS]
    ]


def omitted(blob: bytes) -> int:
    """Return the number of targets that the record omits."""
    return int(msgspec.msgpack.decode(blob)[_OMITTED])


def decision_rows(found: list[CandidateView]) -> list[dict[str, Any]]:
    """Return the table's rows."""
    return [
        {
            "target": candidate.name,
            "why": formatting.reason(candidate.reason),
            "could serve": "yes" if candidate.feasible else "no",
            "compared cost": None
            if candidate.objective_pusd is None
            else formatting.money(round(candidate.objective_pusd)),
            "first token, s": None if candidate.ttft_ms is None else candidate.ttft_ms / 1e3,
            "time per token, ms": candidate.tpot_ms,
        }
        for candidate in found
    ]


def _figures(figures: bytes) -> tuple[float | None, ...]:
    numbers = Struct(f"<{len(figures) // 4}f").unpack(figures)
    places = _BY_COUNT.get(len(numbers))
    if places is None:
        return ()
    return tuple(numbers[place] if isfinite(numbers[place]) else None for place in places)
