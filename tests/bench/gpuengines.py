"""Engines of one model, a GPU each unless told otherwise, until who started this closes its input.

By an interpreter that has vLLM. Prints one line of JSON once all serve: their base URLs and the
seconds of each start; a line with `failed` when one does not. Engines on one GPU start one after
the other, because vLLM takes memory that a neighbour takes meanwhile for its own; `--together`
starts them at once all the same.
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
    engines: list[gpufork.ServedEngine] = []
    gpus = options.gpus or range(len(options.ports))
    try:
        for place, (gpu, port) in enumerate(zip(gpus, options.ports, strict=True)):
            environ = {"CUDA_VISIBLE_DEVICES": str(gpu), "VLLM_SERVER_DEV_MODE": "1"}
            log = options.logs / f"engine-{place}.log"
            engines.append(gpufork.ServedEngine(options.model, port, options.flags, log, environ))
            alone = not options.together and gpu in gpus[place + 1 :]
            if alone and not engines[-1].up(options.limit):
                return failed(engines[-1])
        for engine in engines:
            if not engine.seconds and not engine.up(options.limit):
                return failed(engine)
        said = {
            "urls": [each_engine.base_url for each_engine in engines],
            "start_s": [x.seconds for x in engines],
        }
        print(json.dumps(said), flush=True)
        sys.stdin.read()
    finally:
        for engine in reversed(engines):  # each waits for the memory that was free at its start
            engine.end()
    return 0


def failed(engine: gpufork.ServedEngine) -> int:
    print(json.dumps({"failed": engine.tail()}), flush=True)
    return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--ports", type=int, nargs="+", required=True)
    parser.add_argument("--gpus", type=int, nargs="+", help="of each port; default: 0, 1, ...")
    parser.add_argument("--together", action="store_true", help="also on one GPU")
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds of a start")
    known, flags = parser.parse_known_args()
    known.flags = flags
    return known


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
