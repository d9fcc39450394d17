"""Schedules of an adversary into real ledgers, in parts: `make adversary SCHEDULES=300000 SEED=7`.

Each part is played once by the product's request path into a journal, and a copy of that goes
through the writer into SQLite and into PostgreSQL, where `ledger verify` and both judges are asked.
A finished part stays in `build/adversary/`, so that a run that was interrupted goes on, as long as
the code is the same. Prints progress, the width of bounds by kind and a summary, and writes both to
`build/adversary.json`; status 1 where an invariant does not hold.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]

from adversary_parts import play_part, sqlite_copy  # noqa: E402  (the paths are above)
from adversary_report import bounds_table  # noqa: E402  (as above)

from deploy import parts  # noqa: E402  (as above)
from ledger.database import migrate  # noqa: E402  (as above)

PART = 5_000  # schedules, of a part
BUILD = ROOT / "build"
DATABASES = ("sqlite", "postgres")
TEMPLATE = "adversary_empty"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    seed = int(time.time()) if options.seed is None else options.seed
    done = BUILD / "adversary" / f"{_tree()}-{seed}-{'-'.join(options.database)}"
    done.mkdir(parents=True, exist_ok=True)
    numbers = [seed * 10**6 + place for place in range(-(-options.schedules // options.part))]
    left = [number for number in numbers if not (done / f"{number}.json").exists()]
    print(f"seed {seed}: {len(numbers)} parts, {len(numbers) - len(left)} done before", flush=True)
    count = min(options.part, options.schedules)
    server = _server() if "postgres" in options.database and left else nullcontext()
    with server as postgres, tempfile.TemporaryDirectory(prefix="adversary-") as folder:
        work = partial(_play, Path(folder), count, options.database, postgres)
        with ProcessPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(work, number) for number in left]
            for place, future in enumerate(as_completed(futures), len(numbers) - len(left) + 1):
                number, result = future.result()
                (done / f"{number}.json").write_text(json.dumps(result), encoding="utf-8")
                told = f"{len(result['faults'])} faults, {result['seconds']:.0f} s"
                print(f"part {place} of {len(numbers)} ({number}): {told}", flush=True)
                for fault in result["faults"][:5]:
                    print(f"  {fault}", flush=True)
                if options.stop and result["faults"]:
                    pool.shutdown(cancel_futures=True)
                    return 1
    return _conclude(seed, options.database, [done / f"{number}.json" for number in numbers])


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "adversary", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--seed", type=int, help="of all parts; by itself the time")
    parser.add_argument("--database", nargs="*", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--part", type=int, default=PART, help="schedules of a part")
    parser.add_argument("--stop", action="store_true", help="at the first part with a fault")
    parser.add_argument("--jobs", type=int, default=1, help="parts at once")
    return parser.parse_args(arguments)


def _tree() -> str:
    """What the code is: results of another are none of this one."""
    found = hashlib.sha256()
    for folder in ("gateway", "backends", "router", "ledger", "tests/adversary"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _play(
    folder: Path, count: int, databases: list[str], postgres: str | None, number: int
) -> tuple[int, dict[str, Any]]:
    home = folder / str(number)
    (home / "played").mkdir(parents=True)
    try:
        with sqlite_copy(home) as sqlite:
            urls = {"sqlite": sqlite} if "sqlite" in databases else {}
            if postgres is not None:
                urls["postgres"] = _postgres_copy(postgres, f"part_{number}")
            return number, play_part(home, number, count, urls).as_json()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _server() -> Iterator[str]:
    """The tests' own PostgreSQL with an empty ledger; gives its address without a name."""
    binaries = parts.find_postgres()
    if binaries is None:
        raise SystemExit("no PostgreSQL here: make parts, or ARGS='--database sqlite'")
    spec = importlib.util.spec_from_file_location("adversary_tests", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    server = module.PostgresServer(binaries)
    try:
        server.create(TEMPLATE)
        migrate(server.url(TEMPLATE))
        yield server.url("")
    finally:
        server.stop()


def _postgres_copy(address: str, name: str) -> str:
    import psycopg  # noqa: PLC0415  (a run on SQLite alone needs none)

    admin = address.replace("postgresql+psycopg:", "postgresql:") + "postgres"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    return address + name


def _conclude(seed: int, databases: list[str], files: list[Path]) -> int:
    results = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result["counts"])
    faults = [fault for result in results for fault in result["faults"]]
    print(f"\n{bounds_table([result['bounds'] for result in results])}\n")
    summary = {
        "seed": seed, "databases": databases, **counts, "faults": len(faults),
        "seconds": round(sum(result["seconds"] for result in results)),
    }  # fmt: skip
    print(", ".join(f"{name} {value}" for name, value in summary.items()))
    kept = {**summary, "first_faults": faults[:20], "cores": os.cpu_count(),
            "parts": [{"file": path.name, **result} for path, result in
                      zip(files, results, strict=True)]}  # fmt: skip
    (BUILD / "adversary.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
