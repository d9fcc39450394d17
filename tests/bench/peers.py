"""The gateways that people use today, each in a virtual environment of its own.

Installed from the hash-locked sets under `peers/`. All of them forward to the same four upstream
ports; the two routers choose in turn, which is the cheapest thing that they can do. LiteLLM
checks its master key in memory and has no database: less than it does in production.
"""

import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import children
import yaml
from measure import by_label, tree, until
from wire import free_ports

LOCKS = Path(__file__).parent / "peers"
NAMES = ("vllm-router", "sglang-router", "litellm")
START_LIMIT_S = 120.0


@dataclass
class Target:
    """A gateway that runs: its port, its process tree, and what a client must send."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path
    headers: list[str] = field(default_factory=list)
    end_limit_s: ClassVar[float] = 10.0

    @property
    def pids(self) -> list[int]:
        return tree(self.process.pid)

    @property
    def workers(self) -> list[int]:
        """The processes that serve requests; the whole tree where they have no name of ours."""
        return by_label(self.process.pid).get("worker") or self.pids

    def settle(self) -> None:
        """Until what it does after its answers is done: peers keep no books."""

    def pause(self) -> None:
        """Take no time from the core while another gateway is measured on it."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):  # it ended since it was listed
                os.kill(pid, number)

    def stop(self) -> None:
        self.resume()
        children.end(self.process, grace_s=self.end_limit_s)


def install(name: str, folder: Path) -> Path:
    """The peer's interpreter; nothing is done when the environment is that of the lock file."""
    lock = LOCKS / f"{name}.lock"
    place = folder / name
    stamp = place / "lock.sha256"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    python = place / "bin" / "python"
    if stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"installing {name} ...", flush=True)
    uv = str(Path(sys.executable).parent / "uv")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    commands = [
        [uv, "venv", "--quiet", "--clear", "--python", version, str(place)],
        [
            *(uv, "pip", "install", "--quiet", "--python", str(python)),
            *("--require-hashes", "--only-binary", ":all:", "-r", str(lock)),
        ],
    ]
    for command in commands:
        subprocess.run(command, check=True)
    stamp.write_text(digest)
    return python


def start(name: str, python: Path, upstream: list[int], folder: Path, cores: set[int]) -> Target:
    port, metrics = free_ports(2)
    urls = [f"http://127.0.0.1:{item}" for item in upstream]
    token = f"sk-{secrets.token_hex(24)}"  # LiteLLM refuses keys that are publicly known
    if name == "litellm":
        words = _litellm(python, port, urls, folder, token)
    else:
        words = _router(name, python, port, metrics, urls)
    log = folder / f"{name}.log"
    environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DO_NOT_TRACK": "1"}
    with log.open("wb") as out:
        process = children.start(
            words, cores=cores, cwd=folder, stdout=out, stderr=out, env=environ
        )
    return Target(name, port, process, log, [f"authorization: Bearer {token}"])


def wait_ready(target: Target) -> None:
    """Until it answers a chat completion."""
    body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = dict(line.split(": ", 1) for line in target.headers)
    url = f"http://127.0.0.1:{target.port}/v1/chat/completions"

    def answers() -> bool:
        if target.process.poll() is not None:
            tail = target.log.read_text(errors="replace")[-1500:]
            raise SystemExit(f"bench-gateway: {target.name} ended while it started:\n{tail}")
        asked = urllib.request.Request(url, body, {**headers, "content-type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    began = time.monotonic()
    until(f"{target.name} answers", answers, limit_s=START_LIMIT_S, pause_s=0.3)
    print(f"{target.name} is ready after {time.monotonic() - began:.1f} s", flush=True)


def _router(name: str, python: Path, port: int, metrics: int, urls: list[str]) -> list[str]:
    module = f"{name.replace('-', '_')}.launch_router"
    return [
        *(str(python), "-m", module, "--host", "127.0.0.1", "--port", str(port)),
        *("--worker-urls", *urls, "--policy", "round_robin", "--log-level", "error"),
        *("--prometheus-port", str(metrics), "--prometheus-host", "127.0.0.1"),
        *("--max-concurrent-requests", "4096"),  # 1,000 streams must not wait in its queue
    ]


def _litellm(python: Path, port: int, urls: list[str], folder: Path, token: str) -> list[str]:
    deployments = [
        {
            "model_name": "mock",
            "litellm_params": {"model": "openai/mock", "api_base": f"{url}/v1", "api_key": "x"},
        }
        for url in urls
    ]
    config = folder / "litellm.yaml"
    document = {"model_list": deployments, "general_settings": {"master_key": token}}
    config.write_text(yaml.safe_dump(document))
    binary = str(python.parent / "litellm")
    address = ("--host", "127.0.0.1", "--port", str(port))
    return [binary, "--config", str(config), *address, "--num_workers", "1"]
