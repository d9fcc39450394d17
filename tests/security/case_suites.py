"""S3 once more, through the suites: what hosts wrote that other tests started and broke.

Each test goes on as ever; a plugin (`searched.py`) gives its hosts secrets and looks for them when
they are closed. A test that fails here is named and not counted: it is red where it belongs.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from case import Case, CaseFigures, Given
from parts import ROOT

HERE = Path(__file__).parent
STARTS_HOSTS = re.compile(r"\bmake_host\b|\bdef \w+\([^)]*\bserved[,)]")
QUICK = ("tests/gateway/host/test_peers.py",)
RUN = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def suites() -> list[str]:
    """Test files that start a host of their own."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in paths if STARTS_HOSTS.search(path.read_text())]


def leaked(given: Given) -> CaseFigures:
    files = list(QUICK) if given.broken or not given.full else suites()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "searched"
        out.touch()
        careless = {"SEARCHED_CARELESS": "1"} if given.broken else {}
        options = ["-q", "-p", "searched", "-p", "no:cacheprovider", "-n", "0", "-m", "not long"]
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(HERE), *options, f"--basetemp={folder}/tests", *files],
            cwd=ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, "SEARCHED_OUT": str(out), **careless},
        )  # fmt: skip
        hosts = [json.loads(line) for line in out.read_text().splitlines()]
    if not hosts:
        raise RuntimeError(f"no host was searched:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    hits = [hit for host in hosts for hit in host["hits"]]
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    for line in [*hits[:20], *failed]:
        given.say(f"  {line}")
    ended = done.stdout.strip().splitlines()[-1]
    counted = f"{sum(host['secrets'] for host in hosts):,} secrets of {len(hosts)} hosts"
    size = f"{counted}, {sum(host['bytes'] for host in hosts):,} bytes, {len(files)} files: {ended}"
    return CaseFigures(len(hits), size)


CASES = (Case("S3", "secrets found in what the suites' hosts left", leaked, "a log has the key"),)
