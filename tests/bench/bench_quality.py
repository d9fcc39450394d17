"""The shipped model quantized in six ways, and each judged by `breakeven engine eval`.

`make bench-quality` (eight engines start one after the other: 10 to 25 minutes on two cores).
`broken` and `int2` must fail: a table in which they pass is worth nothing.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backends.engine import shipped

HERE = Path(__file__).parent / "quality"
METHODS = ("int8", "fp8", "gptq", "awq", "broken", "int2")
MUST_FAIL = {"broken", "int2"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", type=Path, default=Path(".breakeven/engine"))
    parser.add_argument("--folder", type=Path, default=Path("build/quality"))
    parser.add_argument("--only", nargs="*", default=METHODS, choices=METHODS)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        if (given.folder / name).exists():
            continue
        words = ["-m", "backends.engine.training.quantize", shipped.DIRECTORY, given.folder / name,
                 "--method", name, "--prompts", HERE / "calibration.jsonl"]  # fmt: skip
        python = given.engine / "bin" / "python"
        subprocess.run([python, *words], check=True)
    candidates = [f"{name}={given.folder / name}" for name in given.only]
    words = [Path(sys.executable).parent / "breakeven", "engine", "eval", shipped.DIRECTORY,
             f"itself={shipped.DIRECTORY}", *candidates, "--prompts", HERE / "prompts.jsonl",
             "--tokens", "64", "--engine", given.engine,
             "--log", given.folder / "log.jsonl"]  # fmt: skip
    subprocess.run(words, check=False)
    kept = subprocess.run([*words, "--json"], check=False, capture_output=True, text=True).stdout
    (given.folder / "quality.json").write_text(kept)
    states = {
        candidate["name"]: candidate["verdict"]["state"]
        for candidate in json.loads(kept)["candidates"]
    }
    passed = sorted(name for name in MUST_FAIL & states.keys() if states[name] != "fails")
    if passed:
        print(f"wrong on purpose, and not found: {', '.join(passed)}")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
