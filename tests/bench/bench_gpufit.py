"""Curves of one engine by `engine bench`, a simulated engine by `engine fit`, and what it misses.

`make bench-gpufit ARGS="--engine FOLDER"` on a GPU host; `--endpoint URL` takes an engine that
already runs with the limits below. Open loops of two shapes at rising rates, a fit of each; every
other run is held out, and judged. What is in `--files` is not measured again, so `--sweep-only` on
the GPU host and the fit elsewhere are one bench. Writes `build/bench-gpufit.json`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
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
FLAGS = ("--max-num-seqs", str(SEQUENCES), "--max-num-batched-tokens", str(BUDGET),
         "--max-model-len", str(CONTEXT))  # fmt: skip
# (prompt, output, seconds of each run, rates). The last of each is beyond what the engine serves:
# without such a run a fit knows no full step. Every other one is held out, from the second on.
SWEEPS = (
    (512, 256, 12.0, (6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0, 36.0, 48.0)),
    (2000, 150, 9.0, (3.0, 5.0, 7.0, 9.0, 11.0, 14.0, 20.0)),
)


@dataclass(frozen=True)
class Run:
    """A file for each, so that one that is cut short loses itself alone."""

    prompt: int
    output: int
    rate: float
    requests: int
    path: Path

    @property
    def words(self) -> list[str]:
        words = ["--rate", f"{self.rate:g}", "--requests", str(self.requests)]
        words += ["--prompt-tokens", str(self.prompt), "--output-tokens", str(self.output)]
        return [*words, "--completions", "--json", "--out", str(self.path)]


def runs(files: Path, scale: float) -> list[Run]:
    return [
        Run(prompt, output, scale * rate, max(4, round(scale * rate * seconds)),
            files / f"{prompt}-{output}-{scale * rate:g}.json")
        for prompt, output, seconds, rates in SWEEPS for rate in rates
    ]  # fmt: skip


def sweep(url: str, missing: list[Run]) -> None:
    breakeven("engine", "bench", url, "--completions", "--rate", "4", "--requests", "16", "--json")
    for run in missing:
        breakeven("engine", "bench", url, *run.words)
        print(f"{run.prompt}/{run.output} at {run.rate:g}/s", flush=True)


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
    for figure in made["figures"]:
        if figure["held_out"]:
            found.setdefault(figure["name"], []).append(abs(100 * figure["error"]))
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
    wanted = runs(options.files, options.scale)
    if missing := [run for run in wanted if not run.path.exists()]:
        measured(options, missing)
    if not options.sweep_only:
        judged(options, wanted)
    return 0


def measured(options: argparse.Namespace, missing: list[Run]) -> None:
    if options.endpoint:
        sweep(options.endpoint, missing)
        return
    with tempfile.TemporaryDirectory(prefix="bench-gpufit-") as folder:
        model = gpumodel.make(Path(folder) / "model", options.shape)
        engines = Engines(options.engine, model, (0,), options.files / "logs", FLAGS)
        try:
            sweep(engines.urls[0], missing)
        finally:
            engines.end()


def judged(options: argparse.Namespace, wanted: list[Run]) -> None:
    kv_tokens = int(json.loads(wanted[0].path.read_text())["about"]["kv_tokens"])
    found: dict[str, Any] = {"hardware": options.hardware or hardware(), "shape": options.shape,
                             "flags": FLAGS, "kv_tokens": kv_tokens}  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    shapes: dict[str, list[Path]] = {}
    for run in wanted:
        shapes.setdefault(f"{run.prompt}/{run.output}", []).append(run.path)
    for name, paths in shapes.items():
        model = options.files / f"model-{name.replace('/', '-')}.json"
        made = fitted(paths, kv_tokens, model, options.evaluations)
        found[name] = {"held_out_percent": missed(made), **made}
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, json.dumps(found[name]["held_out_percent"], indent=1), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    build = ROOT / "build"
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--endpoint", help="base URL of an engine that runs")
    parser.add_argument("--shape", choices=sorted(gpumodel.SHAPES), default="8b")
    parser.add_argument("--scale", type=float, default=1.0, help="of every rate")
    parser.add_argument("--evaluations", type=int, default=400, help="how long the fit looks")
    parser.add_argument("--sweep-only", action="store_true", help="measure, and do not fit")
    parser.add_argument("--hardware", help="which the files are of; default: this machine's")
    parser.add_argument("--files", type=Path, default=build / "gpufit")
    parser.add_argument("--out", type=Path, default=build / "bench-gpufit.json")
    return parser.parse_args()


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
