"""A model of 88 million parameters trained here, quantized by each method, and each judged.

On a host with a GPU, an engine's Python and a corpus (`python -m backends.engine.training.corpus
text.xz --packages ...`):

    make bench-gpuquality ARGS="--corpus text.xz --out build/gpuquality --engine .breakeven/engine"

It trains for `--train` seconds, quantizes with llm-compressor (`--compressor`: a folder that holds
it; where it fails the project's own quantizer is used and the row says so), starts one vLLM
for each candidate on the one GPU and compares them as `breakeven engine eval` does, at both risk
classes. `broken` has int8's numbers under the next channel's scale: it must fail. Results are in
`quality.json` as they come; `--deadline` seconds after its start everything is ended. `--rehearse`:
the shipped model, few prompts, on a CPU.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import httpx
from qualityprompts import write_prompts

from backends.engine import evalrun, shipped
from backends.engine.environment import Environment, variables
from backends.engine.evalfigures import LIMITS, figures, verdict
from backends.engine.evalprompts import read
from backends.engine.evalrun import EvalSubject, EvaluationRun, subject
from backends.engine.process import free_port
from backends.engine.worklog import WorkLog

METHODS = ("fp8", "int8", "gptq", "awq", "fp8-kv")
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "transformers", "vllm", "compressed-tensors", "llmcompressor")
BROKEN = "broken"
OWN_CALIBRATION = 24  # prompts: the own quantizer answers them one by one, on the CPU
ITSELF = "itself"
_COMPRESS = ROOT / "backends" / "engine" / "inside" / "compress.py"


class StepFailed(Exception):
    """A step that ended badly or late, with its log's end."""


# What a candidate may die of; the others go on.
FAULTS = (
    StepFailed, OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError,
    httpx.HTTPError, ExceptionGroup,
)  # fmt: skip


class Results:
    """Written whole after each entry, so that what ends this loses nothing."""

    def __init__(self, path: Path, deadline_s: float) -> None:
        self.path, self.deadline_s = path, deadline_s
        self.told: dict[str, Any] = {}
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        return self.deadline_s - self.seconds

    def add(self, part: str, name: str, **told: Any) -> None:
        entry = self.told.setdefault(part, {}).setdefault(name, {})
        entry.update(told, at_s=round(self.seconds, 1))
        self.path.write_text(json.dumps(self.told, indent=1) + "\n", encoding="utf-8")
        short = {key: value for key, value in told.items() if key != "figures"}
        print(f"[{self.seconds:5.0f} s] {part} {name}: {json.dumps(short)[:600]}", flush=True)


@contextlib.asynccontextmanager
async def child(
    words: list[object], log: Path, environ: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process group of its own, killed whole at the end whatever happened."""
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *map(str, words), stdout=out, stderr=out, cwd=ROOT, start_new_session=True,
            env={"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", **environ},
        )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def step(words: list[object], log: Path, limit_s: float, more: Mapping[str, str]) -> None:
    """Runs to its end. Raises `StepFailed`."""
    async with child(words, log, {**os.environ, **more}) as process:
        try:
            status = await asyncio.wait_for(process.wait(), max(1.0, limit_s))
        except TimeoutError:
            raise StepFailed(f"not done after {limit_s:.0f} s: {_tail(log)}") from None
    if status:
        raise StepFailed(f"status {status}: {_tail(log)}")


def _tail(log: Path) -> str:
    lines = re.split(r"[\r\n]+", log.read_text(encoding="utf-8", errors="replace"))
    telling = [line for line in lines if re.search(r"Error|error:|assert", line)]
    return " | ".join([*telling[-4:], *lines[-4:]])[-1200:]


class Bench:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.python = given.engine / "bin" / "python" if given.engine else Path(sys.executable)
        self.out, self.work = given.out, given.work
        self.logs = self.work / "logs"
        self.out.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.results = Results(self.out / "quality.json", given.deadline)
        self.prompts, self.calibration = (
            self.work / "prompts.jsonl",
            self.work / "calibration.jsonl",
        )
        self.model = self.work / "base"
        paths = [str(given.compressor), os.environ.get("PYTHONPATH", "")]
        self._kit = {"PYTHONPATH": os.pathsep.join(filter(None, paths))} if given.compressor else {}

    async def run(self) -> None:
        about = {"versions": await self._versions(), "arguments": {
            key: str(value) for key, value in vars(self.given).items()}}  # fmt: skip
        self.results.add("run", "about", **about)
        warm = asyncio.create_task(self._warm())
        await self._model()
        await warm
        asked, chosen = (self.given.prompts, self.given.calibration)
        await asyncio.to_thread(
            write_prompts, self.given.corpus, (self.prompts, asked), (self.calibration, chosen)
        )
        await self._judge()

    async def _model(self) -> None:
        given = self.given
        if given.model is not None:
            self.model = given.model
            return
        words = [self.python, "-u", "-m", "backends.engine.training.train",
                 "--size", given.size, "--corpus", given.corpus, "--out", self.model,
                 "--within", given.train]  # fmt: skip
        try:
            await step(words, self.logs / "train.log", given.train + 60, {})
            figures_kept = json.loads((self.model / "training.json").read_text())
            self.results.add("train", given.size, **figures_kept)
        except (StepFailed, OSError) as error:
            self.results.add("train", given.size, failed=str(error))
            self.model = Path(shipped.DIRECTORY)
        log = self.logs / "train.log"
        if log.exists():
            shutil.copy(log, self.out / "train.log")

    async def _warm(self) -> None:
        """Bytecode, kernels and imports while the GPU learns; what fails is said."""
        if self.given.rehearse:
            return
        folder = Path(shipped.DIRECTORY)
        try:
            async with self._engine("warm", folder, ()) as url:
                self.results.add("warm", "engine", url=url)
        except StepFailed as error:
            self.results.add("warm", "engine", failed=str(error))
        words = [*self._compressor(folder, self.work / "warm"), "--method", "fp8"]
        try:
            await step(words, self.logs / "warm-compress.log", 150, self._kit)
            self.results.add("warm", "llm-compressor", works=True)
        except StepFailed as error:
            self.results.add("warm", "llm-compressor", failed=str(error))

    def _compressor(self, model: Path, out: Path) -> list[object]:
        return [self.python, "-u", _COMPRESS, model, out]

    async def _judge(self) -> None:
        base = subject(f"base={self.model}")
        names = [ITSELF, BROKEN, *self.given.only]
        baseline = asyncio.get_running_loop().create_future()
        log = WorkLog(self.work / "eval.jsonl", {"bench": "gpuquality", "model": base.mark})
        lines = asyncio.Semaphore(self.given.at_once)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._baseline(base, baseline, log))
            for name in names:
                group.create_task(self._candidate(name, baseline, log, lines))

    async def _baseline(self, base: EvalSubject, told: Any, log: WorkLog) -> None:
        try:
            async with self._engine("base", self.model, ()) as url:
                side = EvalSubject("base", url, base.mark)
                faults = await evalrun.evaluate(self._asked(), (side, ()), log, _quiet)
            self.results.add("judged", "base", faults=faults, answers=len(log.done))
            told.set_result(side)
        except FAULTS as error:
            self.results.add("judged", "base", failed=f"{type(error).__name__}: {error}")
            told.set_exception(StepFailed("the baseline has no answers"))

    async def _candidate(
        self, name: str, baseline: Any, log: WorkLog, lines: asyncio.Semaphore
    ) -> None:
        try:
            async with lines:
                folder, flags = await self._quantized(name)
                async with self._engine(name, folder, flags) as url:
                    base = await baseline
                    side = EvalSubject(name, url, f"{name} {base.mark}")
                    asked = self._asked()
                    faults = await evalrun.evaluate(asked, (base, (side,)), log, _quiet)
                    self._conclude(name, asked, (base, side), log, faults)
        except FAULTS as error:
            self.results.add("judged", name, failed=f"{type(error).__name__}: {error}")

    def _conclude(
        self, name: str, asked: EvaluationRun, sides: tuple[EvalSubject, EvalSubject],
        log: WorkLog, faults: dict[str, str],
    ) -> None:  # fmt: skip
        kept, way, missing = evalrun.items(asked, sides, log)
        made = figures(kept)
        verdicts = {risk: asdict(verdict(made, limit, missing)) for risk, limit in LIMITS.items()}
        states = {risk: told["state"] for risk, told in verdicts.items()}
        agreement = [
            round(1 - getattr(made.disagreement, key), 5) for key in ("value", "high", "low")
        ]
        self.results.add(
            "judged", name, states=states, agreement=agreement, compared=way, missing=missing,
            faults=faults, verdicts=verdicts, figures=asdict(made),
        )  # fmt: skip

    async def _quantized(self, name: str) -> tuple[Path, tuple[str, ...]]:
        if name == ITSELF:
            return self.model, ()
        out, log = self.work / name, self.logs / f"quantize-{name}.log"
        if (out / "config.json").exists():
            return out, ()
        prompts: list[object] = ["--prompts", self.calibration]
        began = time.monotonic()
        limit = min(self.given.quantize, self.results.left - 60)
        if name == BROKEN:
            return await self._quantized_by_own(name, out, limit)
        try:
            words = [*self._compressor(self.model, out), "--method", name, *prompts]
            await step(words, log, limit, self._kit)
        except StepFailed as error:
            self.results.add("quantized", name, llm_compressor_failed=str(error))
            shutil.rmtree(out, ignore_errors=True)
            if name == "fp8-kv":
                self.results.add("quantized", name, by="vLLM, scale 1")
                return self.model, ("--kv-cache-dtype", "fp8")
            return await self._quantized_by_own(name, out, limit)
        self._told_of(name, out, "llm-compressor", began)
        return out, ()

    async def _quantized_by_own(
        self, name: str, out: Path, limit: float
    ) -> tuple[Path, tuple[str, ...]]:
        began = time.monotonic()
        few = self.calibration.with_name(f"few-{name}.jsonl")
        lines = self.calibration.read_text(encoding="utf-8").splitlines()
        few.write_text("\n".join(lines[:OWN_CALIBRATION]) + "\n", encoding="utf-8")
        words = [self.python, "-u", "-m", "backends.engine.training.quantize", self.model,
                 out, "--method", name, "--prompts", few]  # fmt: skip
        log = self.logs / f"quantize-{name}.log"
        await step(words, log, min(limit, self.results.left - 50), {})
        self._told_of(name, out, "breakeven", began)
        return out, ()

    def _told_of(self, name: str, out: Path, by: str, began: float) -> None:
        size = sum(path.stat().st_size for path in out.glob("*.safetensors"))
        seconds = round(time.monotonic() - began, 1)
        self.results.add("quantized", name, by=by, bytes=size, seconds=seconds)

    @contextlib.asynccontextmanager
    async def _engine(self, name: str, model: Path, flags: tuple[str, ...]) -> AsyncIterator[str]:
        """A vLLM that answers; gives its address. Raises `StepFailed`."""
        port, log = free_port(), self.logs / f"engine-{name}.log"
        words = [self.python, "-u", "-m", "vllm.entrypoints.cli.main", "serve", model,
                 "--host", "127.0.0.1", "--port", port, "--served-model-name", "eval",
                 "--max-model-len", "2048", "--enforce-eager",
                 *self.given.flags.split(), *flags]  # fmt: skip
        began = time.monotonic()
        limit = min(self.given.start, self.results.left - 10)
        environ = variables(os.environ, flavour="cpu") if self.given.rehearse else os.environ
        process_of = child(words, log, environ)
        async with process_of as process, httpx.AsyncClient(trust_env=False) as client:
            while True:
                if process.returncode is not None:
                    raise StepFailed(f"vLLM ended with {process.returncode}: {_tail(log)}")
                if time.monotonic() - began > limit:
                    raise StepFailed(f"vLLM did not serve in {limit:.0f} s: {_tail(log)}")
                with contextlib.suppress(httpx.HTTPError):
                    page = await client.get(f"http://127.0.0.1:{port}/health", timeout=5)
                    if page.status_code == 200:
                        break
                await asyncio.sleep(0.3)
            self.results.add("started", name, seconds=round(time.monotonic() - began, 1))
            yield f"http://127.0.0.1:{port}/v1"

    def _asked(self) -> EvaluationRun:
        engine = Environment(self.python.parent.parent)
        return EvaluationRun(
            read(self.prompts), self.given.tokens, self.given.users, engine, "cuda", self.logs
        )

    async def _versions(self) -> dict[str, Any]:
        lines = (
            "import json, importlib.metadata as m, sys\n"
            "found = {'python': sys.version.split()[0]}\n"
            f"for name in {PACKAGES}:\n"
            "    try: found[name] = m.version(name)\n"
            "    except Exception: found[name] = None\n"
            "print(json.dumps(found))\n"
        )
        found = {}
        for name, more in (("engine", {}), ("compressor", self._kit)):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                lines,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, **more},
            )
            said, _ = await process.communicate()
            found[name] = json.loads(said or b"{}")
        return found


def _quiet(_words: str) -> None:
    """Progress is in the results."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--engine", type=Path, help="the engine's folder; else this Python has vLLM"
    )
    parser.add_argument("--work", type=Path, default=Path("build/gpuquality-work"))
    parser.add_argument("--model", type=Path, help="judge this one; nothing is trained")
    parser.add_argument("--size", default="large")
    parser.add_argument("--train", type=float, default=300.0, help="seconds, reading included")
    parser.add_argument("--quantize", type=float, default=120.0, help="seconds of one method")
    parser.add_argument("--start", type=float, default=120.0, help="seconds of one engine's start")
    parser.add_argument("--deadline", type=float, default=560.0)
    parser.add_argument("--prompts", type=int, default=192)
    parser.add_argument("--calibration", type=int, default=96)
    parser.add_argument("--tokens", type=int, default=80)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--at-once", type=int, default=16, help="candidates")
    parser.add_argument("--only", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--compressor", type=Path, help="folder with llm-compressor")
    parser.add_argument(
        "--flags", default="--gpu-memory-utilization 0.05 --kv-cache-memory-bytes 2147483648"
    )
    parser.add_argument("--rehearse", action="store_true")
    given = parser.parse_args()
    given.out, given.work, given.corpus = (
        path.resolve() for path in (given.out, given.work, given.corpus)
    )
    if given.compressor is not None:
        given.compressor = given.compressor.resolve()
    bench = Bench(given)

    async def bounded() -> None:
        async with asyncio.timeout(given.deadline):
            await bench.run()

    try:
        asyncio.run(bounded())
        bench.results.add("run", "end", whole=True)
    except TimeoutError:
        bench.results.add("run", "end", whole=False, why="the deadline")
    broken = bench.results.told.get("judged", {}).get(BROKEN, {}).get("states", {})
    if "fails" not in broken.values():
        print("the broken scale was not found: this table is worth nothing")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
