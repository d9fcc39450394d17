"""Curves of one engine by `engine bench`, a simulated engine by `engine fit`, and what it misses.

`make bench-gpufit ARGS="--engine FOLDER"` on a GPU host; `--endpoint URL` takes an engine that
already runs with the limits below. Open loops of two shapes at rising rates; every other run is
held out of the fit, and judged. Writes `build/bench-gpufit.json` and the measured requests.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import children
import gpumodel
from gpuserve import Engines
from ours import COMMAND, ROOT

from backends.engine.profiles import hardware

SEQUENCES, BUDGET, CONTEXT = 256, 2048, 8192
# (prompt, output, seconds of each run, rates): no rate twice, a run goes by its rate.
SWEEPS = (
    (512, 256, 9.0, (4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0)),
    (2000, 150, 8.0, (2.0, 3.0, 5.0, 7.0, 9.0, 11.0)),
)


def swept(url: str, files: Path, scale: float) -> list[Path]:
    """A file for each rate, so that a run that is cut short loses itself alone."""
    found = []
    breakeven("engine", "bench", url, "--completions", "--rate", "4", "--requests", "16", "--json")
    for prompt, output, seconds, rates in SWEEPS:
        for rate in (one * scale for one in rates):
            path = files / f"{prompt}-{output}-{rate:g}.json"
            words = ["--rate", f"{rate:g}", "--requests", str(max(4, round(rate * seconds)))]
            words += ["--prompt-tokens", str(prompt), "--output-tokens", str(output)]
            breakeven("engine", "bench", url, "--completions", "--json", "--out", str(path), *words)
            print(f"{prompt}/{output} at {rate:g}/s", flush=True)
            found.append(path)
    return found


def fitted(files: list[Path], kv_tokens: int, out: Path, evaluations: int) -> dict[str, Any]:
    """Status 1 says that a figure is beyond its bar: it is a result, too."""
    words = ["--kv-tokens", str(kv_tokens), "--seqs", str(SEQUENCES), "--budget", str(BUDGET)]
    words += ["--context", str(CONTEXT), "--validate", "--out", str(out), "--json"]
    words += ["--evaluations", str(evaluations)]
    done = breakeven("engine", "fit", *map(str, files), *words, good=(0, 1))
    made: dict[str, Any] = json.loads(done)
    return made


def missed(made: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By figure, of the runs that were held out: how large errors are, in percent."""
    found: dict[str, list[float]] = {}
    for one in made["figures"]:
        if one["held_out"]:
            found.setdefault(one["name"], []).append(abs(100 * one["error"]))
    return {
        name: {"runs": len(errors), "mean": round(sum(errors) / len(errors), 1),
               "worst": round(max(errors), 1)}
        for name, errors in found.items()
    }  # fmt: skip


def breakeven(*words: str, good: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in good:
        raise SystemExit(f"breakeven {' '.join(words[:3])}: {done.stderr or done.stdout}")
    return done.stdout


def main() -> int:
    options = _options()
    options.files.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-gpufit-") as folder:
        model = gpumodel.make(Path(folder) / "model", options.shape)
        flags = ("--max-num-seqs", str(SEQUENCES), "--max-num-batched-tokens", str(BUDGET),
                 "--max-model-len", str(CONTEXT))  # fmt: skip
        engines = (
            None if options.endpoint
            else Engines(options.engine, model, (0,), options.files / "logs", flags)
        )  # fmt: skip
        try:
            url = options.endpoint or engines.urls[0]
            files = swept(url, options.files, options.scale)
        finally:
            if engines is not None:
                engines.end()
    kv_tokens = int(json.loads(files[0].read_text())["about"]["kv_tokens"])
    found: dict[str, Any] = {"hardware": hardware(), "shape": options.shape, "flags": flags,
                             "kv_tokens": kv_tokens}  # fmt: skip
    made = fitted(files, kv_tokens, options.files / "model.json", options.evaluations)
    found |= {"held_out_percent": missed(made), **made}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["held_out_percent"], indent=1))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    build = ROOT / "build"
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--endpoint", help="base URL of an engine that runs")
    parser.add_argument("--shape", choices=sorted(gpumodel.SHAPES), default="8b")
    parser.add_argument("--scale", type=float, default=1.0, help="of every rate")
    parser.add_argument("--evaluations", type=int, default=400, help="how long the fit looks")
    parser.add_argument("--files", type=Path, default=build / "gpufit")
    parser.add_argument("--out", type=Path, default=build / "bench-gpufit.json")
    return parser.parse_args()


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
