"""Parts of the journal's own tests, for scenes: damage, bad disks, a worker under load."""

import sys
from pathlib import Path

JOURNAL_TESTS = Path(__file__).resolve().parents[1] / "ledger" / "journals"
sys.path.insert(0, str(JOURNAL_TESTS))

from damage_books import (  # noqa: E402  (the path is set above)
    DamagePlan,
    plan_damage,
    play_damage,
    spans_of,
)

__all__ = ["JOURNAL_TESTS", "DamagePlan", "plan_damage", "play_damage", "spans_of"]
