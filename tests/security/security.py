"""Goals of security, each with its figure, its bar, and a control that must miss it: one table.

    make security                                   # every goal at its size
    make security ARGS="--only S5 S6"
    make security ARGS="--quick"                     # what `make test` runs, with its controls

Prints progress, then the table; writes `build/security.json`. The exit status is 1 when a figure
misses its bar, or when one is within it although its protection is off. `README.md` beside this
file has the figures as they were measured, and what they do not show.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

import case_doors
import case_fuzz
import case_keys
import case_known
import case_odd
import case_secrets
import case_smuggling
import case_suites
import case_targets
import case_tenants
import case_texts
from case import Case, CaseFigures, Given, MissingPart
from parts import ROOT

CASES: tuple[Case, ...] = (
    *case_known.CASES, *case_targets.CASES, *case_smuggling.CASES, *case_texts.CASES,
    *case_doors.CASES, *case_fuzz.CASES, *case_keys.CASES, *case_secrets.CASES, *case_suites.CASES,
    *case_tenants.CASES, *case_odd.CASES,
)  # fmt: skip
OUT = ROOT / "build" / "security.json"
HEAD = ("goal", "figure", "bar", "measured", "control", "seconds", "")


@dataclass(frozen=True, slots=True)
class Row:
    case: Case
    found: CaseFigures | None  # None: it could not be played
    control: CaseFigures | None
    seconds: float
    note: str = ""

    @property
    def red(self) -> list[str]:
        if self.note.startswith("skipped"):
            return []
        if self.found is None or self.control is None:
            return [self.note]
        said = [] if self.case.holds(self.found) else ["missed", *self.found.faults]
        return said + (["the control is not red"] if self.case.holds(self.control) else [])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "security", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    goals = sorted({case.goal for case in CASES}, key=_in_order)
    parser.add_argument("--only", nargs="+", default=[], metavar="GOAL", help=", ".join(goals))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--seed", type=int, default=0, help="0: a new one, which is printed")
    given = parser.parse_args(arguments)
    chosen = [case for case in CASES if not given.only or case.goal in given.only]
    unknown = set(given.only) - set(goals)
    if unknown or not chosen:
        print(f"no goal named {', '.join(sorted(unknown))}: {', '.join(goals)}")
        return 2
    seed = given.seed or time.time_ns() % 10**6
    rows: list[Row] = []
    for case in sorted(chosen, key=lambda case: _in_order(case.goal)):
        rows.append(_played(case, Given(full=not given.quick, seed=seed)))
        _write(rows, seed)
    print(f"\n{_table(rows)}\n\nwritten: {OUT.relative_to(ROOT)}")
    return 1 if any(row.red for row in rows) else 0


def _in_order(goal: str) -> tuple[str, int]:
    return goal[0], int(goal[1:])


def _played(case: Case, given: Given) -> Row:
    print(f"{case.goal}: {case.figure} (seed {given.seed})", flush=True)
    began, found, control, note = time.monotonic(), None, None, ""
    try:
        found = case.play(given)
        control = case.play(Given(True, given.full, given.seed, given.say))
    except MissingPart as missing:
        note = f"skipped: {missing}"
    except Exception as error:  # noqa: BLE001 - the other goals go on, and this one is red
        traceback.print_exc()
        note = f"{type(error).__name__}: {error}"[:300]
    row = Row(case, found, control, round(time.monotonic() - began, 1), note)
    print(f"  {row.seconds} s: {', '.join(row.red) or note or 'as it should be'}", flush=True)
    return row


def _write(rows: list[Row], seed: int) -> None:
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    about = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit.strip(),
        "machine": f"{os.cpu_count()} cores {platform.machine()}",
        "python": platform.python_version(), "seed": seed,
    }  # fmt: skip
    figures = [
        {
            "goal": row.case.goal, "figure": row.case.figure, "unit": row.case.unit,
            "value": row.found and row.found.value, "bar": row.case.bound, "ok": not row.red,
            "size": row.found and row.found.size, "control": row.control and row.control.value,
            "switched_off": row.case.control, "seconds": row.seconds,
            "note": "; ".join([*row.red, row.note] if row.note not in row.red else row.red),
        }
        for row in rows
    ]  # fmt: skip
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({**about, "figures": figures}, indent=1))


def _table(rows: list[Row]) -> str:
    lines = [HEAD]
    for row in rows:
        values = [
            "-" if element is None else f"{element.value:g}" for element in (row.found, row.control)
        ]
        size = f"{row.found.size}; " if row.found is not None and row.found.size else ""
        end = f"RED: {'; '.join(row.red)}" if row.red else f"{size}{row.note or row.case.control}"
        lines.append(
            (row.case.goal, row.case.figure, row.case.bound, *values, f"{row.seconds}", end)
        )
    wide = [max(len(line[place]) for line in lines) for place in range(len(HEAD) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, wide, strict=False)), line[-1]])
        for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
