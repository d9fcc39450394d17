"""The two C programs: compiled when the bench starts, run on a core of their own."""

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import children

SOURCES = Path(__file__).parent / "wire"
LOAD_LIMIT_S = 900.0


def build(folder: Path) -> None:
    """`load` and `upstream` under `folder`."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise SystemExit("bench-gateway: gcc is missing; on Debian: apt-get install gcc libc6-dev")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("load", "upstream"):
        command = [compiler, "-O2", "-Wall", "-o", str(folder / name), str(SOURCES / f"{name}.c")]
        subprocess.run(command, check=True)


def free_ports(count: int) -> list[int]:
    """Held until all are chosen, so that none is given twice."""
    with ExitStack() as taken:
        probes = [taken.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Upstream:
    """One mock process on several ports, as so many engines."""

    def __init__(self, folder: Path, ports: list[int], cores: set[int]) -> None:
        self.ports = ports
        words = [str(folder / "upstream"), *map(str, ports)]
        self._process = children.start(words, cores=cores)

    def set(self, **mode: int) -> None:
        asked = {"chunks": 64, "delay_us": 0, "first_us": 0, "latency_us": 0, "pad": 0} | mode
        self._get("/_set?" + "&".join(f"{name}={value}" for name, value in asked.items()))

    def stat(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self._get("/_stat"))
        return found

    def stop(self) -> None:
        children.end(self._process, grace_s=5.0)

    def _get(self, path: str) -> bytes:
        deadline = time.monotonic() + 5.0
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}{path}") as answer:
                    return answer.read()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


class Load:
    """Runs the load generator; `watch(at_ns, chunks, reads)` gets each line of progress."""

    def __init__(self, folder: Path, cores: set[int]) -> None:
        self._folder = folder
        self._cores = cores

    def start(self, port: int, body: Path | None, **options: Any) -> "RunningLoad":
        words = [str(self._folder / "load"), "--port", str(port)]
        if body is not None:
            words += ["--body", str(body)]
        for name, value in options.items():
            flag = f"--{name.replace('_', '-')}"
            for item in value if isinstance(value, list | tuple) else [value]:
                words += [flag] if item is True else [flag, str(item)]
        process = children.start(words, cores=self._cores, stdout=subprocess.PIPE, text=True)
        return RunningLoad(process)

    def run(
        self,
        port: int,
        body: Path | None,
        *,
        watch: Callable[[int, int, int], None] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        return self.start(port, body, **options).result(watch)


class RunningLoad:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._limit = threading.Timer(LOAD_LIMIT_S, process.kill)
        self._limit.daemon = True  # an ending bench does not wait for it
        self._limit.start()

    def stop(self) -> None:
        """Hang up; the result comes all the same."""
        self._process.terminate()

    def result(self, watch: Callable[[int, int, int], None] | None = None) -> dict[str, Any]:
        """Wait for its end; what it measured."""
        found: dict[str, Any] | None = None
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                if line.startswith("progress "):
                    _, at_ns, chunks, reads = line.split()
                    if watch is not None:
                        watch(int(at_ns), int(chunks), int(reads))
                else:
                    found = json.loads(line)
            self._process.wait()
        finally:
            self._limit.cancel()
            self._process.kill()  # no load goes on behind a watcher that failed
            self._process.wait()
        if found is None:
            raise SystemExit("bench-gateway: the load generator ended without a result")
        return found
