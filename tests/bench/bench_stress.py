"""Prepaid customers against gateways that break: what is overspent, lost and falsely refused.

After a public stress test of LiteLLM: 250 customers with $0.05 each, at the gateway as it is by
default with two workers. Four scenes, each with customers of its own: bursts of calls at once,
calls without a limit or with a huge one, the database gone for a while, every process killed and
the gateway started again. The provider's own journal is the judge. `make bench-stress` prints the
table and writes `build/stress.json`; status 1 where this gateway overspends, loses or refuses
falsely, or where the control (soft budgets) is not seen to overspend.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import peers
import stressgateways
from measure import until
from postgres import Postgres
from stressfigures import Figures, figures, table, worked
from stressgateways import Gateway
from stressload import Crowd, customers
from wire import free_ports

BUILD = Path(__file__).resolve().parents[2] / "build"
SCENES = ("burst", "oversized", "outage", "killed")
SQLITE, POSTGRES, SOFT = "ours, SQLite", "ours, PostgreSQL", "control: soft budgets"
LITELLM = {1: "LiteLLM, 1 worker", 2: "LiteLLM, 2 workers"}
NAMES = (SQLITE, POSTGRES, SOFT, *LITELLM.values())
AWAY_S = 6.0
WITHOUT_DATABASE = ("burst", "oversized")  # what needs no memory beyond the process
Results = dict[str, dict[str, Figures]]


def main() -> int:
    options = _options()
    folder = BUILD / "stress"
    folder.mkdir(parents=True, exist_ok=True)
    results: Results = {}
    for name in options.only or NAMES:
        able = SCENES
        if name == SOFT:
            able = ("burst",)
        elif name in LITELLM.values():
            able = WITHOUT_DATABASE
        scenes = tuple(scene for scene in able if scene in options.scenes)
        with _gateway(name, folder, options.customers, scenes) as (gateway, journal):
            for scene in scenes:
                results.setdefault(scene, {})[name] = _scene(scene, gateway, journal)
    return _conclude(results, options.customers, partly=bool(options.only))


def _scene(scene: str, gateway: Gateway, journal: Path) -> Figures:
    began = time.monotonic()
    crowd = Crowd(gateway, customers(gateway, scene))
    breaking = {"outage": lambda: gateway.outage(AWAY_S), "killed": lambda: _again(gateway)}
    thread = None
    if scene in breaking:
        thread = threading.Thread(target=_in_the_middle, args=(crowd, breaking[scene]))
        thread.start()
    work = {"burst": crowd.burst, "oversized": crowd.oversized}.get(scene, crowd.steadily)
    asyncio.run(work())
    if thread is not None:
        thread.join()
    until("the provider's rest", _still(journal), limit_s=60, pause_s=1.0)
    names = [customer.name for customer in crowd.customers]
    found = figures(names, worked(journal), gateway.booked(), crowd.told)
    print(f"  {scene:10} {gateway.name:22} {time.monotonic() - began:6.1f} s  {found}", flush=True)
    return found


def _in_the_middle(crowd: Crowd, breaking: Callable[[], None]) -> None:
    """Once everybody was answered once and a half on average: many calls are under way then."""
    half = len(crowd.customers) * 3 // 2
    until("the middle", lambda: crowd.told.outcomes["answered"] >= half, limit_s=300)
    breaking()


def _again(gateway: Gateway) -> None:
    gateway.kill()
    gateway.start()


def _still(journal: Path) -> Callable[[], bool]:
    last = [-1]

    def still() -> bool:
        before, last[0] = last[0], journal.stat().st_size
        return before == last[0]

    return still


@contextmanager
def _gateway(
    name: str, folder: Path, count: int, scenes: tuple[str, ...]
) -> Iterator[tuple[Gateway, Path]]:
    """Running, with a provider of its own and the provider's journal."""
    place = folder / name.replace(" ", "-").replace(",", "").replace(":", "")
    names = [f"{scene}-{number:03d}" for scene in scenes for number in range(count)]
    (port,) = free_ports(1)
    journal = folder / f"{place.name}.jsonl"
    shutil.rmtree(place, ignore_errors=True)
    journal.unlink(missing_ok=True)
    journal.touch()
    command = [sys.executable, str(Path(__file__).with_name("stressupstream.py"))]
    upstream = subprocess.Popen([*command, str(port), str(journal)], stdout=subprocess.DEVNULL)
    database = Postgres() if name == POSTGRES else None
    gateway: Gateway | None = None
    try:
        if name in LITELLM.values():
            workers = next(number for number, word in LITELLM.items() if word == name)
            python = peers.install("litellm", BUILD / "bench")
            gateway = stressgateways.litellm(name, place, python, port, names, workers=workers)
        elif database is not None:
            gateway = stressgateways.ours(
                name, place, port, names, url=database.create("stress"), away=database.outage
            )
        else:
            gateway = stressgateways.ours(name, place, port, names, hard=name != SOFT)
        gateway.start()
        print(f"{name} is ready", flush=True)
        yield gateway, journal
    finally:
        if gateway is not None:
            gateway.stop()
        if database is not None:
            database.stop()
        upstream.terminate()
        upstream.wait(30)


def _conclude(results: Results, count: int, *, partly: bool) -> int:
    """`partly`: what an earlier run measured beside it stays in the file."""
    about = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} cores {platform.machine()}, load {os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "customers": count,
        "litellm": "without a database: its budgets are in its workers' memory",
    }
    path = BUILD / "stress.json"
    found = json.loads(path.read_text())["scenes"] if partly and path.exists() else {}
    for scene, of_scene in results.items():
        measured = {name: asdict(item) for name, item in of_scene.items()}
        found[scene] = {**found.get(scene, {}), **measured}
    path.write_text(json.dumps({"about": about, "scenes": found}, indent=1) + "\n")
    print(f"\n{about['machine']}, {count} customers a scene\n{table(results)}\n")
    faults = list(_faults(results))
    print("\n".join(faults) or "no budget was passed, nothing was lost, nothing refused falsely")
    print("written: build/stress.json")
    return 1 if faults else 0


def _faults(results: Results) -> Iterator[str]:
    for scene, of_scene in results.items():
        for name, item in of_scene.items():
            if name == SOFT and item.over_budget == 0:
                yield f"{scene}, {name}: nothing was overspent, so this bench sees nothing"
            if name in (SQLITE, POSTGRES):
                short = (item.over_budget, item.lost_usd, item.unjustified_refusals)
                if any(short):
                    words = "over budget {}, lost {}, refused falsely {}".format(*short)
                    yield f"{scene}, {name}: {words}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--customers", type=int, default=250, help="of each scene (250)")
    parser.add_argument("--only", nargs="*", default=[], choices=NAMES, help="gateways")
    parser.add_argument("--scenes", nargs="*", default=SCENES, choices=SCENES)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
