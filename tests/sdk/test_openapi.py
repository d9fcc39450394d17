"""schemathesis over the gateway's own OpenAPI document: what it says is what the gateway does.

Valid requests are accepted, others refused, answers have the form and the headers that are written
there, on every path, with a key and without. All checks are on; `schemathesis_hooks.py` says which
three rules are beyond a JSON Schema.
"""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from deploy import parts

HOOKS = Path(__file__).with_name("clients") / "schemathesis_hooks.py"
LIMIT_S = 1800
LONG_S = os.environ.get("SCHEMATHESIS_SECONDS", "600")
PARTS = 2  # processes at once: each reads the document for seconds; its threads do not hold
SELECTED = re.compile(r"(\d+) selected / (\d+) total")
LEAST = 100  # operations of the product: a document that lost most of them proves nothing
# What a path might answer though nothing says so; it is the router that refuses other methods.
METHODS = '[phases.coverage]\nunexpected-methods = ["delete", "get", "post"]\n'
VALID_ONLY = """
[[operations]]
include-path = {}
[operations.phases.coverage.generation]
mode = "positive"
"""
pytestmark = pytest.mark.part("schemathesis")


def examined(gateway, folder: Path, *words: str, document: str = "") -> subprocess.CompletedProcess:
    program = parts.by_name("schemathesis").find().with_name("schemathesis")
    place = document or f"{gateway.root}/openapi.json"
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SCHEMATHESIS_HOOKS": str(HOOKS),
    }
    return subprocess.run(
        [
            program, "--no-color", "run", place, "--url", gateway.root, "--checks", "all",
            "--warnings", "off", *words,
        ],
        cwd=folder, env=environ, check=False, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip


def sparing(document: dict) -> str:
    """A configuration that breaks the rules of a body once, on the first path that has it.

    The others read it with the same code. What is valid is asked of each.
    """
    bodies, said = set(), METHODS
    for path, operations in document["paths"].items():
        body = json.dumps(operations.get("post", {}).get("requestBody"), sort_keys=True)
        if body in bodies:
            said += VALID_ONLY.format(json.dumps(path))
        if body != "null":
            bodies.add(body)
    return said


def examined_in_parts(gateway, folder: Path, *words: str) -> list[subprocess.CompletedProcess]:
    """Every path by one of several processes."""
    document = httpx.get(f"{gateway.root}/openapi.json", trust_env=False).json()
    paths = sorted(document["paths"])

    def part(number: int) -> subprocess.CompletedProcess:
        own = folder / str(number)
        own.mkdir()
        (own / "schemathesis.toml").write_text(sparing(document))
        chosen = [word for path in paths[number::PARTS] for word in ("--include-path", path)]
        return examined(gateway, own, *words, *chosen)

    with ThreadPoolExecutor(PARTS) as pool:
        return list(pool.map(part, range(PARTS)))


def with_key(gateway) -> tuple[str, str]:
    return "--header", f"Authorization: Bearer {gateway.key(team='team-schemathesis')}"


def are_clean(runs: list[subprocess.CompletedProcess]) -> None:
    selected, totals = 0, set()
    for run in runs:
        assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
        assert "No issues found" in run.stdout
        asked, total = map(int, SELECTED.search(run.stdout).groups())
        selected += asked
        totals.add(total)
    assert totals == {selected}, "each operation is asked once, by one of the processes"
    assert selected > LEAST


def test_the_document_is_kept_to(gateway, tmp_path: Path) -> None:
    # Two minutes of CPU; four drawn requests of each operation find one of the three faults below.
    words = ("--seed", "1", "--phases", "examples,coverage")
    are_clean(examined_in_parts(gateway, tmp_path, *with_key(gateway), *words))


def test_it_is_kept_to_without_a_key(gateway, tmp_path: Path) -> None:
    # One of each: what is asked for without a key is refused before its body is read.
    words = ("--seed", "2", "--max-examples", "1", "--phases", "fuzzing")
    are_clean([examined(gateway, tmp_path, *words)])


@pytest.mark.long
@pytest.mark.timeout(LIMIT_S)
def test_the_document_is_kept_to_in_many_cases(gateway, tmp_path: Path) -> None:
    """More and more of them until the time is over; of each part it prints what it had."""
    words = (*with_key(gateway), "--max-time", LONG_S)
    runs = examined_in_parts(gateway, tmp_path, *words)
    for run in runs:
        print(run.stdout[run.stdout.rfind("API Operations") :])
    are_clean(runs)


def test_a_document_that_is_not_true_is_found_out(gateway, tmp_path: Path) -> None:
    """An undocumented status, a form that is not kept to, a member that is not told."""
    document = httpx.get(f"{gateway.root}/openapi.json", trust_env=False).json()
    del document["paths"]["/v1/models"]["get"]["responses"]["4XX"]
    counting = document["paths"]["/v1/messages/count_tokens"]["post"]
    asked = counting["requestBody"]["content"]["application/json"]["schema"]
    asked["properties"]["messages"]["minItems"] = 2
    told = counting["responses"]["200"]["content"]["application/json"]["schema"]
    told["required"] = ["input_tokens", "words"]
    changed = tmp_path / "openapi.json"
    changed.write_text(json.dumps(document), encoding="utf-8")
    words = ("--include-path", "/v1/models", "--include-path", "/v1/messages/count_tokens")
    more = ("--phases", "coverage", "--continue-on-failure", "--seed", "3")
    key = with_key(gateway)
    found = examined(gateway, tmp_path, *key, *words, *more, document=str(changed))
    assert found.returncode == 1
    for fault in ("Undocumented status code", "Schema-violating request accepted", "words"):
        assert fault in found.stdout, found.stdout[-6000:]
