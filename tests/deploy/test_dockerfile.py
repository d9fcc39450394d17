"""The Dockerfile: clean under hadolint, from locks, unprivileged, with all that it copies."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "Dockerfile"
TEXT = FILE.read_text(encoding="utf-8")
COMMANDS = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()


def hadolint(text: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "hadolint"
    if not program.exists() and shutil.which("hadolint") is None:
        pytest.skip("hadolint has no wheel for this machine: get it from its releases")
    path = str(program) if program.exists() else "hadolint"
    return subprocess.run([path, "-"], input=text, check=False, capture_output=True, text=True)


def test_hadolint_finds_nothing() -> None:
    answer = hadolint(TEXT)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_hadolint_would_find_something() -> None:
    answer = hadolint("FROM python:latest\nRUN cd /tmp && sudo pip install uv\n")
    assert answer.returncode == 1
    assert "DL3007" in answer.stdout


def test_every_install_is_hash_locked_or_our_own_wheel() -> None:
    installs = [part for line in COMMANDS for part in line.split("&&") if "pip install" in part]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-deps" in install


def test_it_runs_as_nobody_in_particular() -> None:
    last_stage = COMMANDS[max(i for i, line in enumerate(COMMANDS) if line.startswith("FROM")) :]
    users = [line.split()[1] for line in last_stage if line.startswith("USER")]
    assert users == ["10001:10001"]


def test_base_images_have_a_tag_and_a_suitable_python() -> None:
    images = {line.split()[1] for line in COMMANDS if line.startswith("FROM")}
    assert len(images) == 1
    version = re.match(r"python:(3\.\d+)-slim", images.pop())
    assert version is not None
    assert version.group(1) in {"3.11", "3.12", "3.13"}
    assert f"lib/python{version.group(1)}/" in (ROOT / "deploy/compose.yaml").read_text()


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    for line in COMMANDS:
        if line.startswith("COPY") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
                assert source.split("/")[0] in allowed, source


def test_every_package_of_the_wheel_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {word for line in COMMANDS if line.startswith("COPY") for word in line.split()[1:-1]}
    assert {*wheel["packages"], *wheel["force-include"]} <= copied
