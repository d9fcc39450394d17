"""Store of fitted step-time models: one file for each model, version, flags and hardware.

A fit that was measured under other conditions is not found.
"""

import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from backends.engine.probes import ProbeCost
from backends.engine.profile import StepFit
from backends.stepmodel import FittedStepModel


@dataclass(frozen=True, slots=True)
class ProfileContext:
    """Conditions of a fit. `model_sha256` is the hash of the model's `config.json`."""

    model_sha256: str
    engine_version: str
    flags: tuple[str, ...]
    hardware: str

    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]


def profile_context(model: Path, *, engine_version: str, flags: Sequence[str]) -> ProfileContext:
    digest = hashlib.sha256((model / "config.json").read_bytes()).hexdigest()
    return ProfileContext(digest, engine_version, tuple(flags), hardware())


def hardware() -> str:
    """Return the GPUs' names, or the CPU's model and number of cores."""
    smi = shutil.which("nvidia-smi")
    if smi:
        command = [smi, "--query-gpu=name", "--format=csv,noheader"]
        answer = subprocess.run(  # noqa: S603  (found on PATH, fixed arguments)
            command, capture_output=True, text=True, check=False, timeout=10
        )
        names = answer.stdout.split("\n")
        if answer.returncode == 0 and names[0]:
            return " + ".join(name for name in names if name)
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return f"{len(models)} x {models[0]}" if models else platform.machine()


def save(folder: Path, model: Path, under: ProfileContext, profile: StepFit) -> Path:
    path = _path(folder, model, under)
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"circumstances": asdict(under), "profile": asdict(profile)}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def load(folder: Path, model: Path, under: ProfileContext) -> StepFit | None:
    """Return the fit that was stored for these conditions, or `None` if none is readable."""
    try:
        fields = json.loads(_path(folder, model, under).read_text(encoding="utf-8"))["profile"]
        fields["step"] = FittedStepModel(**fields["step"])
        fields["fitted"] = FittedStepModel(**fields["fitted"])
        fields["pessimistic"] = tuple(fields["pessimistic"])
        fields["spent"] = ProbeCost(**fields.get("spent", {}))
        return StepFit(**fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(folder: Path, model: Path, under: ProfileContext) -> Path:
    return folder / f"{model.name}-{under.key()}.json"
