"""S5: nothing that a request or a name says leads a connection where it may not go."""

import json
import os
import subprocess
import sys

from case import Case, CaseFigures, Given, MissingPart
from parts import ROOT

FORMS = 300
INSIDE = ["unshare", "-rnm", sys.executable, str(ROOT / "tests/security/inside.py")]
LIMIT_S = 900.0


def by_target(given: Given) -> CaseFigures:
    """Names that a configuration could have, in every spelling; look-ups that change their mind."""
    return _canaries(["--broken"] if given.broken else [])


def by_request(given: Given) -> CaseFigures:
    """The same in all places of a request that could name an address, on a running gateway."""
    return _canaries(["--gateway", *(["--broken"] if given.broken else [])], broken=given.broken)


def _canaries(options: list[str], *, broken: bool = False) -> CaseFigures:
    try:
        subprocess.run([*INSIDE[:2], "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingPart(
            "no network namespace may be made here: util-linux, a kernel that lets"
        ) from error
    done = subprocess.run(
        [*INSIDE, *options], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=LIMIT_S, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found = json.loads(done.stdout.splitlines()[-1])
    words = ", ".join(f"{number} {name}" for name, number in found.items() if name != "met")
    few = () if broken or found["forms"] >= FORMS else (f"fewer than {FORMS} forms",)
    return CaseFigures(found["met"], words, few)


CASES = (
    Case("S5", "canaries reached by a target's name", by_target, "addresses are not judged"),
    Case("S5", "fetched for a client", by_request, "who stands inside may fetch"),
)
