"""Three gateway hosts on one machine, each in a network namespace, under load and faults.

    make hosts                                   # all scenes, one after the other in one house
    make hosts ARGS="--only limits budgets"
    make hosts ARGS=--broken                     # the controls: a house for each, all must be red

One PostgreSQL, four simulated engines, an API; nothing leaves the namespaces, and they are gone
when it ends. Prints progress, then the table; writes `build/hosts.json`.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "chaos"))

from house import House
from network import NETWORK, Network, impossible
from scene import COUNTERS, SceneFigures
from scenes import SCENES, Play, join_all, settings
from stage import ROOT

OUT = ROOT / "build" / "hosts.json"
UNITS = {"lost": "answers", "duplicated": "rows", "difference_pusd": "pico-USD",
         "overspent_pusd": "pico-USD"}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    given = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is taken away
    if given.inside:
        return _play(given)
    if reason := impossible():
        print(f"SKIPPED: {reason}")
        return 0
    with Network(given.hosts) as network:
        words = [sys.executable, str(Path(__file__).resolve()), *(arguments or sys.argv[1:])]
        inside = ["ip", "netns", "exec", network.hub, *words, "--inside", *network.hosts]
        near = {"BREAKEVEN_OWN_NETWORK": NETWORK.rpartition(".")[0] + "."}
        with subprocess.Popen(inside, env={**os.environ, **near}) as playing:
            try:
                return playing.wait()
            finally:
                playing.terminate()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "hosts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="of each host")
    parser.add_argument("--seconds", type=float, default=12, help="of load in each scene")
    parser.add_argument("--rounds", type=int, default=10, help="budgets that crowds come for")
    parser.add_argument("--broken", action="store_true", help="the controls: all must be red")
    parser.add_argument("--inside", nargs="+", default=[], help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _play(given: argparse.Namespace) -> int:
    houses = [[name] for name in given.only if SCENES[name][2]] if given.broken else [given.only]
    lines: list[dict[str, object]] = []
    wanted = True
    for names in houses:
        found = _house(names, given)
        prefix = f"{names[0]}, broken: " if given.broken else ""
        lines += _lines(found, prefix)
        wanted = wanted and bool(found.red) is given.broken
        print(f"{prefix}{', '.join(found.red) or 'nothing wrong'}", flush=True)
    _write(lines, given)
    print(f"\n{_table(lines)}\n\nwritten: {OUT.relative_to(ROOT)}")
    return 0 if wanted else 1


def _house(names: Iterable[str], given: argparse.Namespace) -> SceneFigures:
    """Hosts started, the scenes played, everything joined."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"  {time.monotonic() - began:6.1f} s  {line}", flush=True)

    chosen = [SCENES[name] for name in names]
    sabotage = chosen[0][2] if given.broken else ""
    try:
        with House(
            given.inside, workers=given.workers, sabotage=sabotage, **settings(given.rounds)
        ) as house:
            say(f"{len(house.hosts)} hosts serve, {len(house.engines)} engines")
            play = Play(house, given.seconds, given.rounds, say)
            for scene, about, _ in chosen:
                say(about)
                scene(play)
            join_all(play)
            return play.found
    except Exception as error:  # noqa: BLE001 - the table is written, and this is red
        traceback.print_exc()
        return SceneFigures(faults=[f"{type(error).__name__}: {error}"[:300]])


def _lines(found: SceneFigures, prefix: str) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for name in COUNTERS[:4]:
        value = getattr(found, name)
        if value is not None:
            lines.append({"figure": prefix + name, "value": value, "unit": UNITS[name], "bar": "0",
                          "ok": value == 0, "note": ""})  # fmt: skip
    for name, figure in found.figures.items():
        red = any(fault.startswith(f"{name} ") for fault in found.faults)
        lines.append({"figure": prefix + name, "value": figure, "unit": "", "bar": "",
                      "ok": not red, "note": ""})  # fmt: skip
    missing = [
        each_fault
        for each_fault in found.faults
        if each_fault.split(":")[0].endswith(("Error", "Exception"))
    ]
    lines += [{"figure": prefix + "played", "value": item, "unit": "", "bar": "to its end",
               "ok": False, "note": ""} for item in missing]  # fmt: skip
    return lines


def _write(lines: list[dict[str, object]], given: argparse.Namespace) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    about = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "machine": f"{os.cpu_count()} cores {platform.machine()}, load {os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "hosts": given.hosts, "workers": given.workers, "broken": given.broken,
    }  # fmt: skip
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({**about, "figures": lines}, indent=1))


def _table(lines: list[dict[str, object]]) -> str:
    wide = max(len(str(line["figure"])) for line in lines)
    return "\n".join(
        f"{mark}  {line['figure']!s:{wide}}  {line['value']} {line['unit']}"
        for line in lines
        for mark in ["ok " if line["ok"] else "RED"]
    )


if __name__ == "__main__":
    sys.exit(main())
