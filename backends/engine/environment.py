"""Virtual environment of the engine: its paths, its packages, its processes' variables.

vLLM's pinned versions and its gigabytes stay out of the gateway's environment. A stamp is written
last and names the lock that was installed. An environment without a stamp is incomplete.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from backends.environ import plain_environ

Flavour = Literal["cpu", "cuda"]

_STAMP = "breakeven-engine.json"

# Linux grants the AMX tile registers to a process on request (arch_prctl 158,
# ARCH_REQ_XCOMP_PERM 0x1023, XTILEDATA 18). vLLM's attention uses them without that and dies of
# SIGILL. A `.pth` file runs in every Python process of the environment, workers included; on a
# CPU without AMX the call fails and changes nothing.
_AMX = (
    "import ctypes, platform; platform.machine() == 'x86_64' and "
    "ctypes.CDLL(None).syscall(158, 0x1023, 18)\n"
)

# vLLM's processes wait for each other by calling `sched_yield` without end. Linux (6.18 measured)
# then keeps other processes of the core from running for seconds: on two cores first tokens took
# 3 s that take 0.03 s with these short sleeps, at the same tokens a second.
_YIELD = "import functools, os, time; os.sched_yield = functools.partial(time.sleep, 1e-4)\n"


@dataclass(frozen=True, slots=True)
class EnvironmentStamp:
    lock_sha256: str
    flavour: Flavour
    version: str


@dataclass(frozen=True, slots=True)
class Environment:
    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Return site-packages. Raises `FileNotFoundError` if this is no environment."""
        for folder in sorted(self.directory.glob("lib/python3.*/site-packages")):
            return folder
        raise FileNotFoundError(f"{self.directory} is not a virtual environment")

    def stamp(self) -> EnvironmentStamp | None:
        """Return the record of the installed environment, `None` if none is complete."""
        try:
            document = json.loads((self.directory / _STAMP).read_text(encoding="utf-8"))
            stamp = EnvironmentStamp(**document)
        except (OSError, ValueError, TypeError):
            return None
        return stamp if self.python.exists() else None

    def write_stamp(self, stamp: EnvironmentStamp) -> None:
        (self.directory / _STAMP).write_text(json.dumps(asdict(stamp)), encoding="utf-8")


def vllm_version(environment: Environment) -> str | None:
    """Return the installed vLLM's version from its metadata, without starting it."""
    try:
        folders = [path.name for path in environment.packages.glob("vllm*.dist-info")]
    except FileNotFoundError:
        return None
    for name in sorted(folders):
        found = re.match(r"vllm(?:_cpu)?-([0-9]+(?:\.[0-9]+)*)", name)
        if found:
            return found.group(1)
    return None


def flavour_here(devices: Path = Path("/dev")) -> Flavour:
    """Return `cuda` where an NVIDIA GPU and its driver are present, else `cpu`."""
    has_device = any(devices.glob("nvidia[0-9]*"))
    return "cuda" if has_device and shutil.which("nvidia-smi") else "cpu"


def mend_cpu(environment: Environment, version: str) -> None:
    """Patch the CPU build so that vLLM runs. Repeating the call is safe.

    It adds package metadata under the name that vLLM looks up, requests the AMX registers, and
    replaces `sched_yield` by short sleeps.
    """
    folder = environment.packages / f"vllm-{version}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
    (folder / "METADATA").write_text(metadata, encoding="utf-8")
    (folder / "INSTALLER").write_text("breakeven\n", encoding="utf-8")
    here = folder.name
    (folder / "RECORD").write_text(
        f"{here}/METADATA,,\n{here}/INSTALLER,,\n{here}/RECORD,,\n", encoding="utf-8"
    )
    (environment.packages / "breakeven_amx.pth").write_text(_AMX, encoding="utf-8")
    (environment.packages / "breakeven_yield.pth").write_text(_YIELD, encoding="utf-8")


# Without cached bytecode each of vLLM's processes compiles all it imports: twice the start-up time.
# A cache elsewhere depends on each file's path, and the finished environment is renamed.
_NOT_PASSED_ON = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
)  # fmt: skip


# vLLM leaves one core to its scheduler. On two cores its worker process then has one thread to
# bind, and costs 0.5 GiB, 10 s of CPU at each start, and a third of the CPU of each token.
_CORES_OF_ONE_PROCESS = 2
_ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class CpuOptions:
    """Settings of a CPU engine that become environment variables."""

    kv_cache_gib: int = 1
    omp_binding: str = "auto"
    eager: bool = True


def variables(
    base: Mapping[str, str], *, flavour: Flavour, cpu: CpuOptions | None = None
) -> dict[str, str]:
    """Return the environment variables of the engine's processes.

    Hugging Face is offline and usage statistics are off. Only variables that `backends.environ`
    allows are inherited: an engine needs neither provider keys nor the ledger.
    """
    kept = {
        name: value for name, value in plain_environ(base).items() if name not in _NOT_PASSED_ON
    }
    kept |= {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
    }
    if flavour == "cpu":
        options = cpu or CpuOptions()
        kept |= {
            "VLLM_CPU_KVCACHE_SPACE": str(options.kv_cache_gib),
            "VLLM_CPU_OMP_THREADS_BIND": options.omp_binding,
        }
        if len(os.sched_getaffinity(0)) <= _CORES_OF_ONE_PROCESS and options.omp_binding == "auto":
            kept = _ONE_PROCESS | kept
        if options.eager:
            # `--enforce-eager` leaves a few compiled helpers (logprobs): they need a C++
            # compiler and hold the first such request for about 20 s.
            kept["TORCHDYNAMO_DISABLE"] = "1"
    return kept
