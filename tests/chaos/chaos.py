"""The ledger under faults, whole: three journals compared, a control for each scene, one table.

    make chaos                                        # every scene at its full size: hours
    make chaos ARGS="--only L1 --scale 0.1"
    make chaos ARGS="--scale 0.01 --broken"           # controls: every scene must be red

Lost, duplicated, difference, over-spend and unjustified refusals must be 0 on SQLite and on
PostgreSQL. Prints progress, then the table; writes `build/chaos.json`. `README.md` beside this
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
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import scene_bad_disk
import scene_books
import scene_bounds
import scene_burst
import scene_clock
import scene_damage
import scene_database
import scene_disk
import scene_flush
import scene_kills
import scene_pauses
import scene_power
import scene_refusals
import scene_restart
import scene_routes
import scene_stored
import scene_suite
import scene_windows
from scene import COUNTERS, DATABASES, Given, Scene, SceneFigures
from stage import ROOT, MissingPart

SCENES: tuple[Scene, ...] = (
    *scene_kills.SCENES, *scene_database.SCENES, *scene_disk.SCENES, *scene_suite.SCENES,
    *scene_windows.SCENES, *scene_pauses.SCENES, *scene_restart.SCENES, *scene_books.SCENES,
    *scene_burst.SCENES, *scene_bounds.SCENES, *scene_refusals.SCENES, *scene_routes.SCENES,
    *scene_flush.SCENES, *scene_clock.SCENES, *scene_damage.SCENES, *scene_power.SCENES,
    *scene_bad_disk.SCENES, *scene_stored.SCENES,
)  # fmt: skip
OUT = ROOT / "build" / "chaos.json"
SHORT = {"difference_pusd": "difference", "overspent_pusd": "over-spent"}


def main(arguments: list[str] | None = None) -> int:
    given = _options(arguments)
    chosen = [scene for scene in SCENES if not given.only or scene.name in given.only]
    unknown = set(given.only) - {scene.name for scene in SCENES}
    if unknown or not chosen:
        print(f"no scene named {', '.join(sorted(unknown))}: {', '.join(s.name for s in SCENES)}")
        return 2
    if given.list:
        for scene in chosen:
            print(f"{scene.name:4} {scene.rules:12} {scene.about}; control: {scene.control}")
        return 0
    played: list[dict[str, object]] = []
    for scene in chosen:
        for database in scene.databases:
            if database in given.database:
                played.append(_played(scene, database, given))
                _write(played, given)
    if not played:
        print(f"not on {' or '.join(given.database)}: {', '.join(given.only)} (see --list)")
        return 2
    print(f"\n{_table(played)}\n\nwritten: {OUT.relative_to(ROOT)}")
    return 0 if all(_as_wanted(item, broken=given.broken) for item in played) else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(scene.name for scene in SCENES)
    parser.add_argument("--only", nargs="+", default=[], metavar="SCENE", help=names)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size")
    parser.add_argument("--database", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--jobs", type=int, default=1, help="processes, of scenes that can share")
    parser.add_argument("--broken", action="store_true", help="play the controls: all must be red")
    parser.add_argument("--seed", type=int, default=0, help="0: a new one, which is printed")
    parser.add_argument("--way", default="", help="`ledger.journal_writes` of its hosts")
    parser.add_argument("--list", action="store_true", help="what there is, and its controls")
    given = parser.parse_args(arguments)
    given.seed = given.seed or time.time_ns() % 10**6
    return given


def _played(scene: Scene, database: str, given: argparse.Namespace) -> dict[str, object]:
    where = f"{scene.name} on {database}"
    control = f", control: {scene.control}" if given.broken else ""
    print(f"{where}: {scene.about}{control} (scale {given.scale:g}, seed {given.seed})", flush=True)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"  {time.monotonic() - began:6.1f} s  {line}", flush=True)

    asked = Given(database, given.scale, given.broken, given.seed, say, given.jobs, given.way)
    try:
        found = scene.play(asked)
    except MissingPart as missing:
        found = SceneFigures(skipped=str(missing))
    except Exception as error:  # noqa: BLE001 - the other scenes go on, and this one is red
        traceback.print_exc()
        found = SceneFigures(faults=[f"{type(error).__name__}: {error}"[:300]])
    seconds = time.monotonic() - began
    say(f"SKIPPED: {found.skipped}" if found.skipped else ", ".join(found.red) or "nothing wrong")
    about = {"scene": scene.name, "rules": scene.rules, "database": database}
    return {**about, "seconds": round(seconds, 1), **found.as_dict()}


def _as_wanted(entry: dict[str, object], *, broken: bool) -> bool:
    return bool(entry["skipped"]) or bool(entry["red"]) is broken


def _write(played: list[dict[str, object]], given: argparse.Namespace) -> None:
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=False)
    about = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": git(["git", "rev-parse", "--short", "HEAD"]).stdout.strip(),
        "machine": f"{os.cpu_count()} cores {platform.machine()}",
        "python": platform.python_version(),
        "scale": given.scale, "seed": given.seed, "broken": given.broken,
    }  # fmt: skip
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({**about, "scenes": played}, indent=1))


def _table(played: list[dict[str, object]]) -> str:
    names = ["scene", "database", "seconds", *(SHORT.get(name, name) for name in COUNTERS)]
    lines = [[*names, "size and figures"]]
    for item in played:
        counted = ["-" if item[name] is None else str(item[name]) for name in COUNTERS]
        shown = f"SKIPPED: {item['skipped']}" if item["skipped"] else _figures(item)
        mark = "RED " if item["red"] else ""
        lines.append([
            str(item["scene"]), str(item["database"]), str(item["seconds"]), *counted, mark + shown,
        ])  # fmt: skip
    wide = [max(len(line[place]) for line in lines) for place in range(len(names))]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, wide, strict=False)), line[-1]])
        for line in lines
    )


def _figures(entry: dict[str, object]) -> str:
    figures = entry["figures"]
    assert isinstance(figures, dict)
    told = [f"{name} {value}" for name, value in figures.items() if value not in (0, "")]
    red = [f"!! {fault}" for fault in entry["red"]] if isinstance(entry["red"], list) else []
    return "; ".join([str(entry["size"]), *told, *red])


if __name__ == "__main__":
    sys.exit(main())
