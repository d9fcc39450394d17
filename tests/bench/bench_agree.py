"""`engine bench` beside vLLM's own load generator, on one server, round by round in turns.

`make bench-agree ARGS="URL --tokenizer FOLDER --engine PYTHON"`: an engine that runs, its model's
tokenizer and an interpreter that has vLLM. Each round asks the server the same load by both, the
order of each turned round, for a server warms and cools. What is compared is output tokens per
second of the whole run, median TPOT and median TTFT: ours to theirs, by the medians of all rounds,
beside how far the rounds of either lie apart: a figure whose own rounds differ by more than 5 %
settles nothing. Status 1 when a settled one differs by more, or none is settled.

Writes `build/bench-agree.json` (`--out`) as it goes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import children
from ours import COMMAND, ROOT

AGREE = 0.05
FIGURES = ("tokens_s", "tpot_ms", "ttft_ms")
LIMIT_S = 600


def main() -> int:
    options = _options()
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-agree-") as folder:
        for number in range(options.rounds):
            sides = (theirs, ours) if number % 2 else (ours, theirs)
            found = {side.__name__: side(options, Path(folder), number) for side in sides}
            rounds.append(found)
            print(f"round {number + 1}: {json.dumps(found)}", flush=True)
            _keep(options, rounds)
    settled = [item for item in compared(rounds).values() if item["settled"]]
    return (
        0 if settled and all(abs(settlement["ratio"] - 1) <= AGREE for settlement in settled) else 1
    )


def ours(options: argparse.Namespace, folder: Path, number: int) -> dict[str, float]:
    out = folder / "ours.json"
    words = {
        "model": options.model, "concurrency": options.at_once, "requests": options.requests,
        "prompt-tokens": options.prompt, "output-tokens": options.output, "seed": number,
        "out": out,
    }  # fmt: skip
    _run([*COMMAND, "engine", "bench", options.url, "--completions", *_flags(words)], {})
    (run,) = json.loads(out.read_text(encoding="utf-8"))["runs"]
    figures = run["figures"]
    return {
        "tokens_s": round(figures["whole"]["output_tokens"], 1),
        "tpot_ms": round(1e3 * figures["tpot_s"]["p50"]["value"], 3),
        "ttft_ms": round(1e3 * figures["ttft_s"]["p50"]["value"], 3),
    }


def theirs(options: argparse.Namespace, folder: Path, number: int) -> dict[str, float]:
    words = {
        "backend": "openai", "base-url": options.url.removesuffix("/v1"),
        "endpoint": "/v1/completions", "model": options.model, "tokenizer": options.tokenizer,
        "dataset-name": "random", "random-input-len": options.prompt,
        "random-output-len": options.output, "num-prompts": options.requests,
        "max-concurrency": options.at_once, "seed": number,
        "result-dir": folder, "result-filename": "theirs.json",
    }  # fmt: skip
    program = [options.engine, "-m", "vllm.entrypoints.cli.main", "bench", "serve"]
    switches = ["--ignore-eos", "--save-result", "--disable-tqdm"]
    _run([*program, *switches, *_flags(words)], {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"})
    found = json.loads((folder / "theirs.json").read_text(encoding="utf-8"))
    if found["completed"] != options.requests:
        raise SystemExit(f"bench-agree: {found['completed']} of {options.requests} were answered")
    return {
        "tokens_s": round(found["output_throughput"], 1),
        "tpot_ms": round(found["median_tpot_ms"], 3),
        "ttft_ms": round(found["median_ttft_ms"], 3),
    }


def compared(rounds: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each figure: ours to theirs, and the largest of a side's rounds to its least."""
    found = {}
    for name in FIGURES:
        sides = {side: [round_[side][name] for round_ in rounds] for side in ("ours", "theirs")}
        apart = {f"{side}_apart": round(max(all_) / min(all_), 4) for side, all_ in sides.items()}
        found[name] = {
            "ratio": round(median(sides["ours"]) / median(sides["theirs"]), 4),
            **apart,
            "settled": max(apart.values()) <= 1 + AGREE,
        }
    return found


def _keep(options: argparse.Namespace, rounds: list[dict[str, Any]]) -> None:
    said = compared(rounds)
    load = {name: getattr(options, name) for name in ("at_once", "requests", "prompt", "output")}
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": load, "rounds": rounds, "compared": said,
    }  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print("\n".join(f"  {name}: {json.dumps(line)}" for name, line in said.items()), flush=True)


def _flags(words: dict[str, Any]) -> list[str]:
    return [word for name, value in words.items() for word in (f"--{name}", str(value))]


def _run(words: list[Any], environ: dict[str, str]) -> None:
    done = subprocess.run(
        [str(word) for word in words], cwd=ROOT, env={**os.environ, **environ}, check=False,
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(
            f"bench-agree: {words[:6]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="of the engine, with its /v1")
    parser.add_argument("--model", default="m", help="as the engine serves it")
    parser.add_argument("--tokenizer", type=Path, required=True, help="the model's folder")
    parser.add_argument("--engine", type=Path, required=True, help="an interpreter that has vLLM")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--requests", type=int, default=256, help="of a round, by each")
    parser.add_argument("--prompt", type=int, default=512, help="tokens")
    parser.add_argument("--output", type=int, default=128, help="tokens")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench-agree.json")
    return parser.parse_args()


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
