"""That durable means flushed: the kernel's own account of it, by `strace`, and PostgreSQL's.

SIGKILL shows the order of things, not that they outlive the machine: pages that were written stay
in the kernel. A flush for each commit group is what a power cut would ask for.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
from scene import Given, Scene, SceneFigures
from stage import ROOT, MissingPart, Stage

from deploy.parts import by_name

GROUPS = 1_000
PROGRAM = Path(__file__).with_name("flushes.py")
CALLS = "io_submit,fdatasync,fsync"


def play(given: Given) -> SceneFigures:
    strace = shutil.which("strace")
    if strace is None:
        raise MissingPart(f"strace is missing: {by_name('strace').install}")
    found, groups = SceneFigures(), given.of(GROUPS, least=20)
    with Stage(given) as stage:
        trace, url = stage.folder / "trace", stage.new_url("flushes.db")
        program = [sys.executable, str(PROGRAM), str(stage.folder), url, str(groups)]
        subprocess.run([*program, "prepare"], check=True, cwd=ROOT)
        wal = wal_syncs(url)
        command = [strace, "-f", "-e", f"trace={CALLS}", "-o", str(trace), *program]
        if given.broken:
            command.append("broken")
        said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if said.returncode:
            if "ptrace" in said.stderr.lower():
                raise MissingPart(f"strace may not trace here: {said.stderr.strip()[:100]}")
            raise RuntimeError(said.stderr)
        did = json.loads(said.stdout.splitlines()[-1])
        text = trace.read_text()
        in_kernel = len(re.findall(r"io_submit\(.*FDSYNC", text))
        by_call = len(re.findall(r"\b(?:fdatasync|fsync)\(", text))
        if given.database == "postgres":
            by_server = wal_syncs(url) - wal
        else:
            by_server = by_call if in_kernel else max(0, by_call - did["groups"])
    journal = in_kernel or (by_call - by_server)
    found.size = f"{did['groups']} groups of the journal, {did['commits']} commits"
    found.expect("journal flushes", journal, holds=journal >= did["groups"])
    found.expect("flushes of the books", by_server, holds=by_server >= did["commits"])
    found.figures["the journal's way"] = "io_submit" if in_kernel else "fdatasync"
    found.lost = max(0, did["groups"] - journal) + max(0, did["commits"] - by_server)
    return found


def wal_syncs(url: str) -> int:
    """How often the server flushed its log, by its own count."""
    if url.startswith("sqlite"):
        return 0
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as server:
        server.execute("SELECT pg_sleep(1.2)")  # backends tell their counts once a second
        (count,) = server.execute("SELECT wal_sync FROM pg_stat_wal").fetchone()
    return int(count)


SCENES = (
    Scene(
        "FLUSH", "section 5.3", "a flush for every commit group, counted by the kernel", play,
        "nobody waits for the disk",
    ),
)  # fmt: skip
