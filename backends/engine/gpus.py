"""GPUs of the host that engines may see, as the driver lists them."""

import os
import shutil
import subprocess

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def gpu_ids() -> tuple[str, ...]:
    """Return the entries of CUDA_VISIBLE_DEVICES, or else every GPU's index.

    Returns an empty tuple if there is no driver.
    """
    named = os.environ.get(_VISIBLE)
    if named is not None:
        return tuple(word.strip() for word in named.split(",") if word.strip())
    return tuple(line.strip() for line in _query_smi("index") or () if line.strip().isdecimal())


def bytes_in_use() -> int | None:
    """Return the memory in use on all GPUs that engines may see, or `None` without a GPU."""
    lines = _query_smi("memory.used")
    try:
        return None if lines is None else sum(int(line) for line in lines) << 20
    except ValueError:
        return None


def _query_smi(what: str) -> list[str] | None:
    words = smi_command(what)
    if words is None:
        return None
    answer = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603  (found on PATH, its arguments are no shell's)
    return answer.stdout.splitlines()


def smi_command(fields: str) -> list[str] | None:
    """Return a command that prints comma-separated `fields`, a line for each visible GPU.

    Returns `None` if nvidia-smi is not installed.
    """
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    words = [smi, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    # The driver lists every GPU of the host, also those that engines may not see.
    seen = os.environ.get(_VISIBLE)
    return words + ([f"--id={seen}"] if seen else [])
