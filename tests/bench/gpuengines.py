"""Engines of one model, a GPU each, until whoever started this closes its input.

By an interpreter that has vLLM. Prints one line of JSON once all serve: their base URLs and the
seconds of each start; a line with `failed` when one does not.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import children
import gpufork


def main() -> int:
    options = _options()
    gpufork.preload()
    engines = [
        gpufork.Served(
            options.model, port, options.flags, options.logs / f"engine-{place}.log",
            {"CUDA_VISIBLE_DEVICES": str(place), "VLLM_SERVER_DEV_MODE": "1"},
        )
        for place, port in enumerate(options.ports)
    ]  # fmt: skip
    try:
        for engine in engines:
            if not engine.up(options.limit):
                print(json.dumps({"failed": engine.tail()}), flush=True)
                return 1
        said = {"urls": [one.base_url for one in engines], "start_s": [x.seconds for x in engines]}
        print(json.dumps(said), flush=True)
        sys.stdin.read()
    finally:
        for engine in engines:
            engine.end()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--ports", type=int, nargs="+", required=True)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds of a start")
    known, flags = parser.parse_known_args()
    known.flags = flags
    return known


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
