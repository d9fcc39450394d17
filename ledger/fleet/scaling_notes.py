"""The last state of a host's scaling process, by pool: for metrics and pages.

It is a file in the run directory, written before the first plan, so that its metrics are never
empty.
"""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

NOTES_FILE = "scaling.json"
ACTOR = "scaling"  # the actor of its overrides
EVERY_POOL = "*"
PAUSE = "fleet:"  # subjects of overrides that pause a pool, or every pool
PAUSED = "paused"


class ScalingNote(msgspec.Struct, frozen=True):
    """The state of one pool. `None` is unknown, never zero; `plan_us` is 0 before a plan.

    `parked` are engines that no plan wants now. `findings` counts by kind. Amounts are USD per
    hour.
    """

    pool: str
    mode: str
    wanted: int
    running: int
    serving: int
    plan_us: int = 0
    seen_us: int = 0
    reason: str = "unobserved"
    sentence: str = "no plan was made yet"
    held: str | None = None
    holder: str | None = None
    rent_usd: float | None = None
    next_usd: float | None = None
    last_usd: float | None = None
    starts: int = 0
    stops: int = 0
    inside: int = 0
    outside: int = 0
    findings: dict[str, int] = {}
    words: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()


def write_scaling(run_dir: Path, notes: list[ScalingNote]) -> None:
    write_note(run_dir / NOTES_FILE, notes)


def read_scaling(run_dir: Path) -> dict[str, ScalingNote]:
    """Return the notes by pool; empty if no pool sizes itself."""
    return {note.pool: note for note in read_note(run_dir / NOTES_FILE, list[ScalingNote]) or ()}
