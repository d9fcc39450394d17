"""What the suite shows whole is called from there: the same tests, in a run of their own."""

import re
import subprocess
import sys

from scene import Given, Scene, SceneFigures
from stage import ROOT

SCHEDULES = 100_000


def run(found: SceneFigures, *words: str) -> str:
    """Run tests; their numbers become figures."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    ended = re.findall(r"(\d+) (passed|failed|errors?|skipped)", done.stdout)
    counts = {kind: int(number) for number, kind in ended}
    found.figures["tests passed"] = counts.get("passed", 0)
    skipped = counts.get("skipped", 0)
    found.expect("tests skipped", skipped, holds=skipped == 0)
    found.expect("tests wrong", done.returncode, holds=done.returncode == 0)
    return done.stdout


def submissions(given: Given) -> SceneFigures:
    """50 at once with each key, twice: over a restart, and over a killed host."""
    found = SceneFigures()
    file = "tests/gateway/request/idempotency/test_idempotency_store.py"
    controls = "test_without_the_row_all_of_them_would_be_calls"
    names = "restart_are_one_call or killed_host or days_later" if given.scale >= 0.5 else (
        "restart_are_one_call or days_later"
    )  # fmt: skip
    said = run(found, "-m", "long or not long", "-k", controls if given.broken else names, file)
    if given.broken:  # the control is a test, which sees its figures red
        found.duplicated = 1 if found.figures["tests passed"] else 0
        return found
    sizes = re.findall(r"50 x (\d+) keys", said)
    found.size = f"50 at once x {'+'.join(sizes)} keys, twice"
    found.duplicated = found.lost = 0 if not found.faults else 1
    return found


def schedules(given: Given) -> SceneFigures:
    """Crash schedules of the budgets in virtual time, on both hosts at every commit point."""
    found, folder = SceneFigures(), "tests/ledger/schedules"
    if given.broken:
        run(found, f"{folder}/test_mutants.py")
        found.overspent_pusd = 1 if found.figures["tests passed"] else 0
        return found
    part = ["-m", "long"] if given.scale >= 0.5 else ["-k", "test_no_schedule_breaks_a_budget"]
    said = run(found, *part, f"{folder}/test_schedules.py")
    played = sum(int(count) for count in re.findall(r"(\d+) schedules:", said))
    found.size = f"{played} schedules of 20 steps"
    found.overspent_pusd = found.unjustified = 0 if not found.faults else 1
    return found


def clocks(given: Given) -> SceneFigures:
    """Days that have 23 and 25 hours, months, skipped midnights; L7's other half is elsewhere."""
    found = SceneFigures()
    run(found, "tests/ledger/budgets/test_windows.py")
    if given.broken:
        found.faults.append("the mutants of `windows` are among the schedules' controls")
    found.size = "windows by property"
    return found


SCENES = (
    Scene(
        "L6", "L6", "the same Idempotency-Key again and again, on both databases", submissions,
        "keys that nobody keeps", databases=("sqlite",),
    ),
    Scene("L7", "L7", "windows in every calendar", clocks, "see SCHED", databases=("sqlite",)),
    Scene(
        "SCHED", "section 5.2", "crashes at every commit point, in virtual time", schedules,
        "faults planted in the budget code", databases=("sqlite",),
    ),
)  # fmt: skip
