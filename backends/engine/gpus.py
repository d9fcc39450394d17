"""The host's GPUs as the driver lists them, those of them that engines may see."""

import os
import shutil
import subprocess

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def gpu_ids() -> tuple[str, ...]:
    """Return the names in CUDA_VISIBLE_DEVICES, else every GPU's index; none without a driver."""
    named = os.environ.get(_VISIBLE)
    if named is not None:
        return tuple(word.strip() for word in named.split(",") if word.strip())
    return tuple(line.strip() for line in _query_smi("index") or () if line.strip().isdecimal())


def bytes_in_use() -> int | None:
    """Return the bytes in use on all GPUs that engines may see; `None` without a GPU."""
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
    """Return what prints a line of comma-separated `fields` for each GPU that engines may see.

    `None` without nvidia-smi.
    """
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    words = [smi, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    # The driver lists every GPU of the host: what others do on theirs is no matter of ours.
    seen = os.environ.get(_VISIBLE)
    return words + ([f"--id={seen}"] if seen else [])
