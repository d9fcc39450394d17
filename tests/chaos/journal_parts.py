"""Parts of the journal's own tests, for scenes: damage, bad disks, a worker under load."""

import sys
from pathlib import Path

JOURNAL_TESTS = Path(__file__).resolve().parents[1] / "ledger" / "journals"
sys.path.insert(0, str(JOURNAL_TESTS))

from bad_disk import (  # noqa: E402  (the path is set above)
    BadDisk,
    DiskImage,
    NoDisk,
    PowerCut,
    PowerCuts,
    mounted_image,
)
from damage_books import DamagePlan, plan_damage, play_damage, spans_of  # noqa: E402  (as above)
from power_cuts import play_power_cuts  # noqa: E402  (as above)

__all__ = [
    "BadDisk",
    "DamagePlan",
    "DiskImage",
    "NoDisk",
    "PowerCut",
    "PowerCuts",
    "mounted_image",
    "plan_damage",
    "play_damage",
    "play_power_cuts",
    "spans_of",
]
