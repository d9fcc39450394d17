"""The router's reasons as stored in `reason` and `spill_reason`, with their meaning.

`reasons.json` is generated from `router/reasons.py` by `make settings`; a test compares the two.
The ledger does not import the router, so the reasons are passed as data.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

FILE: Final = Path(__file__).with_name("reasons.json")


class ReasonText(NamedTuple):
    """The text of one reason. `overflow` is its group in `router.reasons.Overflow`."""

    overflow: str
    sentence: str


def read(text: bytes) -> Mapping[str, ReasonText]:
    """Decode the file. Raises `msgspec.ValidationError` where an entry lacks a field."""
    rows = msgspec.json.decode(text, type=dict[str, tuple[str, str]])
    return {word: ReasonText(*row) for word, row in rows.items()}


REASONS: Final = read(FILE.read_bytes())
