"""What a first view needs is imported before Streamlit answers."""

import subprocess
import sys
from pathlib import Path

from dashboard.start import LATER

ROOT = Path(__file__).resolve().parents[2]
BARE = "import sys, dashboard.start; print(*(one for one in sys.argv[1:] if one in sys.modules))"
WARM = BARE.replace("; print", "; dashboard.start.import_ahead(); print")


def test_nothing_that_is_listed_is_left_for_the_first_viewer() -> None:
    def imported(code: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *LATER], capture_output=True, text=True, check=True,
            cwd=ROOT, timeout=120,
        )  # fmt: skip
        return done.stdout.split()

    assert imported(WARM) == [*LATER]
    assert "dashboard.navigation" not in imported(BARE), "the control: this imports no page"


def test_it_is_streamlits_own_command() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "dashboard.start", "--version"], capture_output=True, text=True,
        check=True, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert said.stdout.startswith("Streamlit")
