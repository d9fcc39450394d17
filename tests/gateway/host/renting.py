"""An operator's program that rents simulated engines: `start TOKEN PLACE`, `stop ...`, `list POOL`.

Its folder holds `ports.json`, a file for each engine that runs, `rented.jsonl` (its own journal of
starts and ends, as an invoice would have them), and `faults.json`: what goes wrong meanwhile.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])
SLEEPS = "import time; time.sleep(600)"


def rented() -> list[dict]:
    found = [json.loads(path.read_text()) for path in sorted((FOLDER / "engines").iterdir())]
    return [engine for engine in found if is_alive(engine["pid"])]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def note(what: str, engine: dict) -> None:
    with (FOLDER / "rented.jsonl").open("a") as lines:
        lines.write(json.dumps({"what": what, "at_us": time.time_ns() // 1000, **engine}) + "\n")


def rent(token: str, place: int, faults: dict, *, second: bool = False) -> None:
    told = json.loads((FOLDER / "ports.json").read_text())
    port = 0 if second else told["ports"][place]
    words = ["-m", "backends.simulator.server", "--port", str(port), *told["flags"]]
    engine = {"name": f"i-{time.time_ns()}", "token": token, "place": place}
    process = subprocess.Popen(
        [sys.executable, *(["-c", SLEEPS] if faults.get("never_ready") else words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, cwd=told["root"],
    )  # fmt: skip
    engine["pid"] = process.pid
    (FOLDER / "engines" / engine["name"]).write_text(json.dumps(engine))
    note("start", engine)


def end(engine: dict) -> None:
    os.kill(engine["pid"], signal.SIGTERM)
    while is_alive(engine["pid"]):
        time.sleep(0.02)
    note("end", engine)


def main(verb: str, *words: str) -> None:
    faults = json.loads((FOLDER / "faults.json").read_text())
    if verb in faults.get("hangs", ()):
        time.sleep(600)
    if verb == "list":
        shown = [engine for engine in rented() if engine["token"] not in faults.get("forgets", ())]
        print(
            json.dumps([{key: item[key] for key in ("name", "token", "place")} for item in shown])
        )
        return
    token, place = words[0], int(words[1])
    mine = [engine for engine in rented() if engine["token"] == token]
    if verb in faults.get("lies", ()):
        return  # as if it were done
    if verb == "start" and not mine:
        rent(token, place, faults)
        if faults.get("starts_two"):
            rent(token, place, faults, second=True)
    if verb == "stop":
        for engine in mine:
            end(engine)


if __name__ == "__main__":
    main(*sys.argv[2:])
