"""What a first view needs is imported before Streamlit answers."""

import subprocess
import sys
from pathlib import Path

from dashboard.start import LATER

ROOT = Path(__file__).resolve().parents[2]
LISTS = "print(*(name for name in listed if name in sys.modules))"
BARE = f"import sys, dashboard.start; listed = sys.argv[1:]; {LISTS}"
WHOLE = f"""
import atexit, sys, dashboard.start
listed, sys.argv[1:] = sys.argv[1:], ["--version"]
atexit.register(lambda: {LISTS})
dashboard.start.main()
"""


def test_it_is_streamlits_own_command_and_nothing_listed_is_left_for_the_first_viewer() -> None:
    def said(code: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *LATER], capture_output=True, text=True, check=True,
            cwd=ROOT, timeout=120,
        )  # fmt: skip
        return done.stdout.split()

    name, *_, version = (words := said(WHOLE))[: -len(LATER)]
    assert (name, version[0].isdigit()) == ("Streamlit,", True)
    assert words[-len(LATER) :] == [*LATER]
    assert "dashboard.navigation" not in said(BARE), "the control: this imports no page"
