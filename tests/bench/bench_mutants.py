"""Mutants that the tests find: `make bench-mutants`, or `ARGS="--count 60 --jobs 8"`.

A sample, drawn by a seed, of all mutations of the files named; each is written into a copy of the
tree, and the tests that mirror its file run until the first failure, then those near it: of the
files that import it. The control: without a mutant they pass. A file whose own do not is left out
and named, and of those near it none that does not counts. `--money` draws as many from each
part of what a request is charged (bounds, usage, settle, holds, relay), and asks the adversary
first, with `--adversary-last` only about what the tests missed. `--limit` is the time in seconds
of one run of tests, for a busy machine; a mutant that needs longer is found, by `time`. What is
done stands in a JSON file, so an interrupted run goes on. `--same-as OTHER` takes only files whose
mutations are the same in another tree, renames apart, so that both trees are asked about the same
changes. `--only ledger/usage.py ledger/usage.py:200` plants all mutants of a file, or of a line, in
place of a sample.
"""

import argparse
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT))

from mutations import Mutation, mutated, mutations  # noqa: E402  (the path is above)

from deploy.near import tests_near, tests_of  # noqa: E402  (as above)

FILES = ("router/*.py", "ledger/budgets/*.py", "ledger/prices/*.py", "ledger/journals/*.py",
         "gateway/request/*.py", "gateway/http/*.py", "gateway/kinds/*.py")  # fmt: skip
MONEY = {
    "bounds": ("ledger/prices/rates.py", "ledger/prices/quotes.py", "ledger/prices/unread_terms.py",
               "gateway/fleet/attempt_bounds.py", "gateway/fleet/candidates.py",
               "gateway/fleet/output_overruns.py", "gateway/fleet/output_cap.py",
               "gateway/kinds/chat_media.py", "gateway/kinds/prompt_media.py"),
    "usage": ("ledger/usage.py", "ledger/usage_members.py", "gateway/kinds/kind_usage.py",
              "backends/usage_places.py", "gateway/request/reported_usage.py",
              "gateway/request/usage_checks.py", "gateway/kinds/least_prompt.py"),
    "settle": ("gateway/request/charging.py", "gateway/request/metering.py",
               "gateway/request/usage_bill.py", "gateway/request/booked_usage.py",
               "gateway/request/hangups.py", "gateway/request/plausible_claims.py",
               "router/target_output.py", "gateway/request/outcome_evidence.py",
               "ledger/accounts.py", "ledger/stated_costs.py"),
    "holds": ("gateway/request/admission.py", "ledger/budgets/escrow.py",
              "ledger/budgets/client.py", "ledger/writing/fold.py",
              "gateway/kinds/billable_units.py", "gateway/request/prompt_overruns.py"),
    "relay": ("gateway/kinds/relay.py", "gateway/kinds/transcript_relay.py",
              "gateway/request/response_writer.py", "backends/chunks.py", "backends/text_length.py",
              "backends/reported.py", "backends/charged_errors.py"),
}  # fmt: skip
# No database and no shrinking: the first part by kind, the second of all kinds mixed.
ADVERSARY = ("tests/adversary/adversary.py", "--seed", "1", "--schedules", "1400", "--part", "700",
             "--stop", "--database")  # fmt: skip
LIMIT_S = 240.0  # of the tests of one file
PARTS = ("router", "ledger", "backends", "gateway", "dashboard", "deploy", "tests", "migrations")


class Mutant(NamedTuple):
    file: str  # in this tree
    mutation: Mutation

    @property
    def name(self) -> str:
        return f"{self.file}#{self.mutation.number}"


def old_paths(root: Path) -> dict[str, str]:
    """Files of this tree, and where an older one has them (`docs/renames.csv`)."""
    with (root / "docs" / "renames.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["old_name"]]
    return {row["new_module"]: row["old_module"] for row in rows}


def path_in(other: Path, file: str, olds: dict[str, str]) -> str | None:
    """Where another tree has a file of this one: by the longest part of its path that moved."""
    parts = Path(file).with_suffix("").as_posix()
    for length in range(len(parts.split("/")), 0, -1):
        head = "/".join(parts.split("/")[:length])
        if head in olds:
            moved = f"{olds[head]}{parts[len(head) :]}.py"
            if (other / moved).exists():
                return moved
    return file if (other / file).exists() else None


def sample(
    root: Path, other: Path | None, patterns: Sequence[str], count: int, seed: int
) -> Iterator[tuple[Mutant, str]]:
    """Mutants of this tree, and the file in the tree that they are planted in."""
    olds = old_paths(root) if other is not None else {}
    every: list[tuple[Mutant, str]] = []
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            file = path.relative_to(root).as_posix()
            found = mutations(path.read_text(encoding="utf-8"))
            where: str | None = file
            if other is not None:
                where = path_in(other, file, olds)
                if where is None:
                    continue
                theirs = mutations((other / where).read_text(encoding="utf-8"))
                if [each.what for each in theirs] != [each.what for each in found]:
                    continue
            assert where is not None
            if tests_of(other or root, where) and tests_of(root, file):
                every += [(Mutant(file, each), where) for each in found]
    print(f"{len(every)} mutations of {len({mutant.file for mutant, _ in every})} files")
    yield from random.Random(seed).sample(every, min(count, len(every)))


def named(root: Path, words: Sequence[str]) -> Iterator[tuple[Mutant, str]]:
    """All mutants of the files and lines that the words name: `FILE` or `FILE:LINE`."""
    for word in words:
        file, _, line = word.partition(":")
        for each in mutations((root / file).read_text(encoding="utf-8")):
            if not line or each.line == int(line):
                yield Mutant(file, each), file


class MutantTrial(NamedTuple):
    """What is asked about each mutant, and the time in seconds that each of them has."""

    python: str
    adversary: str = ""  # `first`, `last` or not
    limit_s: float = LIMIT_S


class _TooLongError(Exception):
    """A run did not end within its time."""


def judge(
    tree: Path, file: str, mutation: Mutation, trial: MutantTrial
) -> tuple[str | None, float]:
    """Who finds it in a copy of the tree, if anybody, and how many seconds it took."""
    path = tree / file
    whole = path.read_text(encoding="utf-8")
    changed = mutated(whole, mutation.number)
    path.write_text(changed, encoding="utf-8")
    began, finder = os.times().elapsed, None
    near = [test for test in tests_near(tree, file) if test not in tests_of(tree, file)]
    try:
        if trial.adversary == "first" and not _plays(tree, trial):
            finder = "adversary"
        elif not _passes(tree, tests_of(tree, file), trial):
            finder = "tests"
        elif any(_differs(tree, path, (changed, whole), [test], trial) for test in near):
            finder = "tests near"
        elif trial.adversary == "last" and not _plays(tree, trial):
            finder = "adversary"
    except _TooLongError:
        finder = "time"
    finally:
        path.write_text(whole, encoding="utf-8")
    return finder, os.times().elapsed - began


def _differs(
    tree: Path, path: Path, texts: tuple[str, str], tests: list[str], trial: MutantTrial
) -> bool:
    """Whether tests fail with the first text of a file, and pass with the second."""
    path.write_text(texts[0], encoding="utf-8")
    if _passes(tree, tests, trial):
        return False
    path.write_text(texts[1], encoding="utf-8")
    return _passes(tree, tests, trial)


def _plays(tree: Path, trial: MutantTrial) -> bool:
    return _ends_well(tree, [trial.python, *ADVERSARY], trial.limit_s)


def _passes(tree: Path, tests: list[str], trial: MutantTrial) -> bool:
    command = [trial.python, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *tests]
    return _ends_well(tree, command, trial.limit_s)


def _ends_well(tree: Path, command: list[str], limit_s: float) -> bool:
    environ = os.environ | {
        "PYTHONPYCACHEPREFIX": str(tree / ".bytecode"), "PYTHONPATH": str(tree)
    }  # fmt: skip
    with subprocess.Popen(
        command, cwd=tree, env=environ, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            return process.wait(limit_s) == 0
        except subprocess.TimeoutExpired:
            raise _TooLongError from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def copied(tree: Path, folder: Path) -> Path:
    """A copy to plant in, with the configuration of its tests."""
    folder.mkdir()
    for part in PARTS:
        shutil.copytree(tree / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for path in tree.iterdir():
        if path.is_file():
            shutil.copy2(path, folder / path.name)
    return folder


def _choose(options: argparse.Namespace) -> list[tuple[Mutant, str]]:
    if options.only:
        return list(named(ROOT, options.only))
    groups = list(MONEY.values()) if options.money else [FILES]
    each_count = -(-options.count // len(groups))
    return [
        planted
        for group in groups
        for planted in sample(ROOT, options.same_as, group, each_count, options.seed)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--money", action="store_true", help="of charges; the adversary is first")
    parser.add_argument("--adversary-last", action="store_true", help="after the tests")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of each run of tests")
    parser.add_argument("--same-as", type=Path, help="another tree with the same mutations")
    parser.add_argument("--in-other", action="store_true", help="plant them there instead of here")
    parser.add_argument("--state", type=Path)
    parser.add_argument("--only", nargs="+", help="`FILE` or `FILE:LINE`: all its mutants")
    options = parser.parse_args()
    tree = options.same_as if options.in_other else ROOT
    state = options.state or ROOT / "build" / ("money.json" if options.money else "mutants.json")
    state.parent.mkdir(exist_ok=True)
    done = json.loads(state.read_text()) if state.exists() else {}
    chosen = _choose(options)
    when = ("last" if options.adversary_last else "first") if options.money else ""
    trial = MutantTrial(sys.executable, when, options.limit)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            trees.put(copied(tree, Path(folder) / str(number)))

        def file_of(mutant: Mutant, where: str) -> str:
            return where if options.in_other else mutant.file

        def is_fit(file: str) -> bool:
            copy = trees.get()
            try:
                return _passes(copy, tests_of(copy, file), trial)
            except _TooLongError:
                return False
            finally:
                trees.put(copy)

        files = sorted({file_of(*each) for each in chosen if each[0].name not in done})
        with ThreadPoolExecutor(options.jobs) as pool:
            fit = dict(zip(files, pool.map(is_fit, files), strict=True))
        print("left out, their tests fail without a mutant:", [f for f in files if not fit[f]])

        def look(planted: tuple[Mutant, str]) -> None:
            mutant, where = planted
            if mutant.name in done or not fit[file_of(mutant, where)]:
                return
            copy = trees.get()
            try:
                file = file_of(mutant, where)
                finder, seconds = judge(copy, file, mutant.mutation, trial)
            finally:
                trees.put(copy)
            line, what = mutant.mutation.line, mutant.mutation.what
            told = {"line": line, "what": what, "s": round(seconds, 1)}
            done[mutant.name] = {"found": finder is not None, "by": finder, **told}
            state.write_text(json.dumps(done, indent=1))
            word = f"found by {finder}" if finder else "SURVIVED"
            print(
                f"{len(done):4} {word:18} {mutant.file}:{line} {what} ({seconds:.0f} s)", flush=True
            )

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(look, chosen))
    mine = [done[mutant.name] for mutant, _ in chosen if mutant.name in done]
    print(f"{sum(each['found'] for each in mine)} of {len(mine)} are found", end="")
    finders = Counter(each["by"] for each in mine if each.get("by"))
    print("".join(f", {count} by {finder}" for finder, count in sorted(finders.items())))


if __name__ == "__main__":
    main()
