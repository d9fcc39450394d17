"""Imports a LiteLLM proxy's file, runs the proxy and the import, and tells where they differ.

    python tests/bench/bench_litellm_beside.py [--scene NAME]

Both ask one scripted provider, whose journal says who was asked. Compared are the status, the
distinct targets in their order, which one answered, the cost, and whether a stream was whole.
Differences that the page on leaving LiteLLM names are listed in `KNOWN`; any other one fails. The
proxy's environment is `build/peers/litellm`. Writes `build/bench-litellm-beside.json`.
"""

import argparse
import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import children
import yaml
from besidecases import SCENES, BesideCase, BesideScene
from measure import until
from peers import install
from wire import free_ports

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from gateway.cli.main import main; main()")
PROVIDER_KEY = "sk-scripted"
ALL_LOSSES = ("fallbacks", "models", "prices")  # what the scenes may lose
SHARE = 0.12  # of 80 requests: three times the error of a draw


@dataclass(frozen=True, slots=True)
class Server:
    """A gateway that runs; `journal`: of the provider that it asks."""

    name: str
    url: str
    token: str
    journal: Path


KNOWN: dict[str, str] = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", action="append", choices=[scene.name for scene in SCENES])
    options = parser.parse_args()
    python = install("litellm", ROOT / "build" / "peers")
    told: dict[str, Any] = {}
    unlisted = 0
    with children.ended_by_signals(), tempfile.TemporaryDirectory() as place:
        for scene in SCENES:
            if options.scene is None or scene.name in options.scene:
                folder = Path(place) / scene.name
                folder.mkdir()
                told[scene.name] = judge(scene, folder, python)
    for name, found in told.items():
        for words, case in found["cases"].items():
            if not case["differs"]:
                continue
            known = KNOWN.get(words)
            unlisted += known is None
            print(f"{name}: {words}: {', '.join(case['differs'])}: {known or 'NOT LISTED'}")
            print(
                f"    LiteLLM {json.dumps(case['litellm'])}\n    ours    {json.dumps(case['ours'])}"
            )
    cases = [case for found in told.values() for case in found["cases"].values()]
    same = sum(not case["differs"] for case in cases)
    print(f"{len(cases)} cases: {same} the same, {len(cases) - same} differ, {unlisted} not listed")
    out = ROOT / "build" / "bench-litellm-beside.json"
    out.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if unlisted else 0


def judge(scene: BesideScene, folder: Path, python: Path) -> dict[str, Any]:
    answers: dict[str, dict[str, Any]] = {}
    with provider(folder) as (address, journal):
        losses = import_file(scene, folder)
        for make in (litellm, ours):
            with make(scene, folder, address, journal, python) as server:
                answers[server.name] = {case.name: ask(server, case) for case in scene.cases}
    cases = {}
    for case in scene.cases:
        theirs, own = answers["litellm"][case.name], answers["ours"][case.name]
        differs = [what for what in case.compares if not equal(what, theirs[what], own[what])]
        cases[case.name] = {"differs": differs, "litellm": theirs, "ours": own}
    return {"losses": losses, "cases": cases}


def equal(what: str, theirs: Any, own: Any) -> bool:
    if what == "shares":
        names = theirs.keys() | own.keys()
        return all(abs(theirs.get(name, 0) - own.get(name, 0)) <= SHARE for name in names)
    return bool(theirs == own)


def ask(server: Server, case: BesideCase) -> dict[str, Any]:
    """Return what came of a case's requests."""
    before = len(server.journal.read_text().splitlines())
    got = [request(server, case) for _ in range(case.times)]
    asked = [json.loads(line)[0] for line in server.journal.read_text().splitlines()[before:]]
    counts = Counter(asked)
    return {
        "status": sorted({answer["status"] for answer in got}),
        "answered": sorted({answer["answered"] for answer in got}),
        "cost": sorted({answer["cost"] for answer in got}),
        "whole": all(answer["whole"] for answer in got),
        "asked": [name for name, _ in itertools.groupby(asked)],
        "tries": len(asked),
        "shares": {name: round(count / len(asked), 3) for name, count in counts.items()},
        "seconds": round(max(answer["seconds"] for answer in got), 1),
    }


def request(server: Server, case: BesideCase) -> dict[str, Any]:
    body = {"model": case.model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
    if case.stream:
        body |= {"stream": True}
    made = urllib.request.Request(
        f"{server.url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {server.token}"},
    )
    began_s, text, headers = time.monotonic(), b"", {}
    try:
        with urllib.request.urlopen(made, timeout=60) as answer:
            status, headers = answer.status, dict(answer.headers)
            with suppress(OSError, ValueError):
                while piece := answer.read1(65536):
                    text += piece
    except urllib.error.HTTPError as error:
        status = error.code
        error.read()
    cost = headers.get("x-litellm-response-cost") or headers.get("x-breakeven-cost-usd") or ""
    return {
        "status": status,
        "answered": _answered(text) if status == 200 and not case.stream else "",
        "cost": f"{round(Decimal(cost), 12).normalize():f}" if cost and not case.stream else "",
        "whole": b"[DONE]" in text and b'"error"' not in text,
        "seconds": time.monotonic() - began_s,
    }


def _answered(text: bytes) -> str:
    return str(json.loads(text)["choices"][0]["message"]["content"]).removeprefix("by ")


def import_file(scene: BesideScene, folder: Path) -> list[dict[str, Any]]:
    """`config import`, as a person runs it; every loss is accepted and told."""
    given = folder / "litellm.yaml"
    given.write_text(yaml.safe_dump(scene.document(None)))
    accepted = [word for loss in ALL_LOSSES for word in ("--accept", loss)]
    made = subprocess.run(
        [*COMMAND, "config", "import", str(given), "--out", str(folder / "breakeven.yaml"),
         "--prices", str(folder / "prices.csv"), "--json", *accepted],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        raise SystemExit(f"{scene.name} was not imported:\n{made.stdout[-3000:]}{made.stderr}")
    notes: list[dict[str, Any]] = json.loads(made.stdout)["notes"]
    return notes


@contextmanager
def provider(folder: Path) -> Iterator[tuple[str, Path]]:
    (port,) = free_ports(1)
    journal = folder / "asked.jsonl"
    journal.touch()
    words = [sys.executable, str(Path(__file__).parent / "besideupstream.py"), str(port)]
    with running([*words, str(journal)], folder / "provider.log", f"http://127.0.0.1:{port}/v1"):
        yield f"http://127.0.0.1:{port}/v1", journal


@contextmanager
def litellm(
    scene: BesideScene, folder: Path, address: str, journal: Path, python: Path
) -> Iterator[Server]:
    token = f"sk-{secrets.token_hex(24)}"
    (port,) = free_ports(1)
    config = folder / "proxy.yaml"
    config.write_text(yaml.safe_dump(scene.document(address, token)))
    words = [str(python.parent / "litellm"), "--config", str(config), "--host", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with running([*words, "--port", str(port)], folder / "proxy.log", f"{url}/health/liveliness"):
        yield Server("litellm", url, token, journal)


@contextmanager
def ours(
    scene: BesideScene, folder: Path, address: str, journal: Path, python: Path
) -> Iterator[Server]:
    """The imported file, with nothing changed but where its provider is and where it listens."""
    (port,) = free_ports(1)
    config = folder / "breakeven.yaml"
    document = yaml.safe_load(config.read_text())
    for section in document["providers"].values():
        section["base_url"] = address
    server = {**document.get("server", {}), "port": port, "workers": 1}
    document |= {"state_dir": str(folder / "state"), "server": server}
    config.write_text(yaml.safe_dump(document))

    def breakeven(*words: str) -> str:
        made = subprocess.run(
            [*COMMAND, *words, "--config", str(config)],
            cwd=ROOT, capture_output=True, text=True, check=False, env=_environ(),
        )  # fmt: skip
        if made.returncode:
            raise SystemExit(f"{' '.join(words)}:\n{made.stdout}{made.stderr}")
        return made.stdout

    breakeven("prices", "import", "--from", str(folder / "prices.csv"), "--yes")
    key = json.loads(breakeven("keys", "create", "--name", "beside", "--team", "beside", "--json"))
    words = [*COMMAND, "serve", "--config", str(config)]
    url = f"http://127.0.0.1:{port}"
    with running(words, folder / "serve.log", f"{url}/readyz", orphaned=signal.SIGTERM):
        yield Server("ours", url, key["token"], journal)


@contextmanager
def running(
    words: list[str], log: Path, ready: str, *, orphaned: int = signal.SIGKILL
) -> Iterator[None]:
    """A process until the block ends; begins once `ready` answers 200."""
    with log.open("wb") as out:
        process = children.start(
            words, cores=os.sched_getaffinity(0), orphaned=orphaned,
            cwd=ROOT, stdout=out, stderr=out, env=_environ(),
        )  # fmt: skip

    def answers() -> bool:
        if process.poll() is not None:
            raise SystemExit(f"{words[0]} ended:\n{log.read_text(errors='replace')[-3000:]}")
        try:
            with urllib.request.urlopen(ready, timeout=3) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        until(f"{ready} answers", answers, limit_s=180, pause_s=0.3)
        yield
    finally:
        children.end(process, grace_s=30)


def _environ() -> dict[str, str]:
    stated = {"OPENAI_API_KEY": PROVIDER_KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return {**os.environ, **stated, "DO_NOT_TRACK": "1"}


if __name__ == "__main__":
    raise SystemExit(main())
