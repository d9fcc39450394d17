"""Engines forked from a process that has already imported vLLM, and their end.

Imports take half a minute of each start, twice (the API server's and the engine's); GPU time is
dear. The parent never touches the GPU, so that its children may. Whoever forks must not run
threads: fork first, run event loops afterwards.
"""

# ruff: noqa: PLC0415  (vLLM is there on a GPU host alone, and is imported when that is wanted)

import contextlib
import json
import os
import re
import signal
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backends.engine.gpus import bytes_in_use

FREED_BYTES = 512 << 20  # of GPU memory: what may be in use beside what was before


def preload() -> float:
    """Imports what an engine needs; returns the seconds."""
    began = time.monotonic()
    import vllm.entrypoints.cli.main
    import vllm.entrypoints.cli.serve
    import vllm.entrypoints.openai.api_server
    import vllm.model_executor.models.llama
    import vllm.v1.engine.core
    import vllm.v1.executor.multiproc_executor
    import vllm.v1.worker.gpu_worker  # noqa: F401  (imported for what it costs)

    return time.monotonic() - began


def forked(work: Callable[[], None], log: Path, environ: dict[str, str]) -> int:
    """A child in a session of its own, with its output in a file; returns its pid."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ.update(environ)
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  (the child has no caller: it says what and ends)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def answered(work: Callable[[], dict[str, Any]], log: Path, environ: dict[str, str],
             limit_s: float) -> dict[str, Any]:  # fmt: skip
    """What a child found out, or how it ended."""
    answer = log.with_suffix(".json")
    answer.unlink(missing_ok=True)
    before = bytes_in_use()
    pid = forked(lambda: answer.write_text(json.dumps(work())) and None, log, environ)
    deadline = time.monotonic() + limit_s
    ended = False
    while time.monotonic() < deadline and not ended:
        time.sleep(0.2)
        ended = os.waitpid(pid, os.WNOHANG)[0] == pid
    _group(pid, signal.SIGKILL)
    if not ended:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    free(before)
    if answer.exists():
        found: dict[str, Any] = json.loads(answer.read_text())
        return found
    return {"failed": "took too long" if not ended else "died", "log": _tail(log)}


class ServedEngine:
    """`vllm serve` on a port, from fork to the end of its whole process group."""

    def __init__(self, model: Path, port: int, flags: list[str], log: Path,
                 environ: dict[str, str]) -> None:  # fmt: skip
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.log = log
        self._health = f"http://127.0.0.1:{port}/health"
        self._metrics = f"http://127.0.0.1:{port}/metrics"
        words = ["vllm", "serve", str(model), "--served-model-name", "m", "--load-format", "dummy"]
        words += ["--host", "127.0.0.1", "--port", str(port), *flags]
        self._before = bytes_in_use()
        began = time.monotonic()

        def serve() -> None:
            sys.argv = words
            from vllm.entrypoints.cli.main import main

            main()

        self._pid = forked(serve, log, {"VLLM_WORKER_MULTIPROC_METHOD": "fork", **environ})
        self._began = began
        self.seconds = 0.0

    def up(self, limit_s: float) -> bool:
        while time.monotonic() - self._began < limit_s:
            if os.waitpid(self._pid, os.WNOHANG)[0]:
                return False
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self._health, timeout=5).close()
                self.seconds = round(time.monotonic() - self._began, 1)
                return True
            time.sleep(0.5)
        return False

    def end(self) -> None:
        _group(self._pid, signal.SIGTERM)
        for _ in range(40):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self._pid, os.WNOHANG)[0]:
                    break
            time.sleep(0.2)
        _group(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        free(self._before)

    def counted(self, name: str) -> int:
        """One of vLLM's counters since the start, as `num_preemptions`."""
        with urllib.request.urlopen(self._metrics, timeout=60) as page:
            text = page.read().decode()
        values = re.findall(rf"^vllm:{name}_total(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(int(float(value)) for value in values)

    def said(self, *wanted: str) -> list[str]:
        """Lines of its log that hold one of these."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return [
            line[-400:] for line in lines if any(wanted_value in line for wanted_value in wanted)
        ][:12]

    def tail(self) -> str:
        return _tail(self.log)


def free(before: int | None, limit_s: float = 25.0) -> None:
    """Until the GPUs' memory is given back."""
    deadline = time.monotonic() + limit_s
    while before is not None and time.monotonic() < deadline:
        used = bytes_in_use()
        if used is None or used <= before + FREED_BYTES:
            return
        time.sleep(0.3)


def _group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _tail(log: Path) -> str:
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    lines = [line for line in text.splitlines() if "Error" in line or "error" in line][-6:]
    return "\n".join([*lines, "...", text[-900:]])
