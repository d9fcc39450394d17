"""L10: hosts restarted one after the other with SIGTERM and open streams; a migration among them.

On PostgreSQL two hosts share the books. Both begin with the code of before the newest migration;
each is ended and started with this code, which migrates under the other's load: for a while the
old version and the new one write. On SQLite one host is restarted, as it is.
"""

import io
import os
import subprocess
import tarfile
import time
import tomllib
from pathlib import Path
from typing import Any

from account import settle
from crowd import CallerRecord, Crowd, Manner, statuses
from scene import Given, Scene, SceneFigures
from sqlalchemy import text
from stage import ROOT, Stage

from ledger.database import open_readonly

ROUNDS = 20
MANNER = Manner(streams=0.8, tokens=(20, 300), pause_s=0.01)


def before_the_newest_migration(folder: Path) -> str:
    """The product as it was, in this folder; "" where there is no history to take it from."""
    find = ["git", "log", "--diff-filter=A", "--format=%H", "-1", "--", "migrations/versions"]
    newest = subprocess.run(find, cwd=ROOT, capture_output=True, text=True, check=False)
    commit = f"{newest.stdout.strip()}^"
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if newest.returncode or archive.returncode:
        return ""
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
        tree.extractall(folder, filter="data")
    return commit


def play(given: Given) -> SceneFigures:
    found, rounds = SceneFigures(), given.of(ROUNDS)
    with Stage(given, "ends at once") as stage:
        hosts, old = [stage.host()], ""
        if given.database == "postgres":
            hosts.append(stage.host())
            for number, host in enumerate(hosts):
                stands_on(host, f"machine-{number}")
            old = before_the_newest_migration(stage.folder / "old")
            for host in hosts if old else ():
                runs(host, stage.folder / "old")
        for host in hosts:
            host.start()
        revisions = [revision(hosts[0])]
        crowds = [
            Crowd([host], [host.token], MANNER, callers=6, seed=given.seed + place)
            for place, host in enumerate(hosts)
        ]
        for crowd in crowds:
            crowd.start()
        codes, slowest = [], 0.0
        for number in range(max(rounds, len(hosts))):
            time.sleep(1.0)
            host = hosts[number % len(hosts)]
            runs(host, ROOT)
            began = time.monotonic()
            codes.append(host.terminate())
            slowest = max(slowest, time.monotonic() - began)
            host.start()
            revisions.append(revision(host))
            given.say(f"{number + 1} of {rounds} restarts, {done(crowds)} answers finished")
        time.sleep(2.0)
        said = [item for crowd in crowds for item in crowd.stop()]
        settle(hosts[0].ledger, said, stage.upstream.entries, found)
        codes += [host.terminate() for host in hosts]
        found.figures["in the books"] = " and ".join(names(hosts[0]))
    found.size = f"{len(hosts)} hosts, {len(codes) - len(hosts)} restarts under load"
    found.expect("exits", sum(map(abs, codes)), holds=not any(codes))
    found.figures["slowest end, s"] = round(slowest, 1)
    found.figures["old version"] = old[:8] or ("none" if given.database == "sqlite" else "missing")
    found.figures["schema"] = " to ".join(dict.fromkeys(revisions))
    found.figures["answers"] = statuses(said)
    silent = [line for line in said if is_cut(line)]
    found.expect("ended without a word", len(silent), holds=not silent)
    return found


def stands_on(host: Any, machine: str) -> None:
    """Before hosts had names of their own, two of one machine's name spent from one grant."""
    site = host.state / "site" / "sitecustomize.py"
    site.write_text(f"import socket\nsocket.gethostname = lambda: {machine!r}\n{site.read_text()}")


def runs(host: Any, root: Path) -> None:
    """From its next start on, this code: also what is imported before the folder counts."""
    site = host.environ["PYTHONPATH"].split(os.pathsep)[0]
    host.root, host.environ["PYTHONPATH"] = root, f"{site}{os.pathsep}{root}"
    host.serve = command_of(root)


def command_of(root: Path) -> str:
    """What `breakeven` is there: it has moved between versions."""
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["breakeven"].partition(":")
    return f"from {module} import {name}; {name}()"


def is_cut(said: CallerRecord) -> bool:
    """Answered with 200, and neither whole nor told of an error."""
    return said.status == 200 and not said.finished and not said.left and said.code == ""


def done(crowds: list[Crowd]) -> int:
    return sum(crowd.finished for crowd in crowds)


def revision(host: Any) -> str:
    engine = open_readonly(host.ledger)
    with engine.connect() as books:
        found = str(books.execute(text("SELECT version_num FROM alembic_version")).scalar_one())
    engine.dispose()
    return found


def names(host: Any) -> list[str]:
    engine = open_readonly(host.ledger)
    with engine.connect() as books:
        found = list(books.execute(text("SELECT name FROM hosts ORDER BY name")).scalars())
    engine.dispose()
    return found


SCENES = (
    Scene(
        "L10", "L10", "hosts restarted under load, and a migration among them", play,
        "the end is SIGKILL, and settles come later",
    ),
)  # fmt: skip
