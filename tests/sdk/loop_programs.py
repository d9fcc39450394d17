"""Programs of frameworks' users, each in an environment with nothing of ours."""

import shutil
import subprocess
from pathlib import Path

from deploy import parts

CLIENTS = Path(__file__).with_name("clients")
PROGRAM_LIMIT_S = 300
PROGRAMS = {  # program: the part that it runs in, and how many checks it has
    "agno_checks": ("loops-agno", 17),
    "kernel_checks": ("loops-kernel", 12),
    "guide_checks": ("loops-guide", 16),
    "loop_checks": ("loops-node", 31),
}


def packages_of(part: str) -> Path:
    found = parts.by_name(part).find()
    assert found is not None, part
    return found / "node_modules"


def command_of(program: str, folder: Path) -> list[str]:
    place = parts.by_name(PROGRAMS[program][0]).find()
    if program != "loop_checks":  # `-I` would hide what the programs share
        return [str(place), "-E", "-s", str(CLIENTS / f"{program}.py")]
    (folder / "node_modules").symlink_to(place / "node_modules")
    return ["node", shutil.copy(CLIENTS / f"{program}.mjs", folder)]


def said_by(command: list[str], folder: Path, environ: dict[str, str]) -> str:
    answer = subprocess.run(
        command, cwd=folder, env=environ, check=False, capture_output=True, text=True,
        timeout=PROGRAM_LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr[-4000:]
    return answer.stdout
