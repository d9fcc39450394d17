"""The Dockerfile: clean under hadolint, from locks, unprivileged, with all that it copies."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from deploy.pythons import SUPPORTED

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "Dockerfile"
TEXT = FILE.read_text(encoding="utf-8")
COMMANDS = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
NAMES = ("PYC_INVALIDATION_MODE", "UV_NO_INSTALLER_METADATA", "SOURCE_DATE_EPOCH")
SAID = dict(re.findall(rf"({'|'.join(NAMES)})=(\S+)", TEXT))
# Whoever keeps bytecode elsewhere has none in the image to compare.
PLAIN = {
    name: value for name, value in os.environ.items() if name not in (*NAMES, "PYTHONPYCACHEPREFIX")
}


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


def test_the_base_is_an_argument_that_both_stages_take() -> None:
    images = {line.split()[1] for line in COMMANDS if line.startswith("FROM")}
    assert images == {"${BASE}"}
    first = next(line for line in COMMANDS if line)
    found = re.fullmatch(r"ARG BASE=python:(3\.\d+)-slim-\w+", first)
    assert found is not None, "before the first FROM, with a tag for whoever names none"
    assert found[1] in SUPPORTED
    for other in ("deploy/compose.yaml", "deploy/helm/breakeven/templates/dashboard.yaml"):
        assert f"lib/python{found[1]}/" in (ROOT / other).read_text(encoding="utf-8")


def installed(wheel: Path, place: Path, environ: dict[str, str]) -> dict[str, str]:
    """Path -> hash of every file that the Dockerfile's last installation makes."""
    words = next(line for line in COMMANDS if "dist/*.whl" in line).split("&& ")[1].split()
    words[words.index("--python") + 1] = sys.executable
    words[words.index("dist/*.whl") :] = [str(wheel), "--target", str(place), "--quiet"]
    program = Path(sys.executable).parent / words[0]
    subprocess.run([program, *words[1:]], check=True, env={**PLAIN, **environ})
    found = {
        path.relative_to(place).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.rglob("*") if path.is_file()
    }  # fmt: skip
    shutil.rmtree(place)
    return found


def leave_some(_folder: str, names: list[str]) -> list[str]:
    """All but a few modules of each package: how they are packed and compiled is alike for all."""
    modules = sorted(name for name in names if name.endswith(".py") and name != "__init__.py")
    return [*modules[2:], *({"__pycache__"} & set(names))]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same one built twice, its sources' times another hour's."""
    made = []
    for hour in (1, 2):
        folder = tmp_path_factory.mktemp("build")
        for line in COMMANDS:
            if line.startswith("COPY") and "--from" not in line:
                *sources, target = line.split()[1:]
                for source in sources:
                    to = folder / (source if target == "./" else target)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    if (ROOT / source).is_dir():
                        shutil.copytree(ROOT / source, to, ignore=leave_some)
                    else:
                        shutil.copyfile(ROOT / source, to)
        for path in folder.rglob("*"):
            os.utime(path, (hour * 3600, hour * 3600))
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
        subprocess.run(build, check=True, cwd=folder, capture_output=True, env={**PLAIN, **SAID})
        (wheel,) = (folder / "dist").glob("*.whl")
        made.append(wheel)
    return made


def test_what_it_installs_is_the_same_bytes_whenever(wheels: list[Path], tmp_path: Path) -> None:
    assert set(SAID) == set(NAMES)
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    first, second = (installed(wheel, tmp_path / "site", SAID) for wheel in wheels)
    assert any(name.endswith(".pyc") for name in first)
    assert first == second


@pytest.mark.long
@pytest.mark.parametrize(
    ("without", "differs"),
    [
        ("PYC_INVALIDATION_MODE", "gateway/__pycache__/"),
        ("UV_NO_INSTALLER_METADATA", "uv_cache.json"),
    ],
)
def test_control_without_what_it_says_bytes_differ(
    wheels: list[Path], tmp_path: Path, without: str, differs: str
) -> None:
    said = {
        name: value for name, value in SAID.items() if name not in (without, "SOURCE_DATE_EPOCH")
    }
    first = installed(wheels[0], tmp_path / "site", said)
    time.sleep(1.1)  # what is written down is a time in whole seconds
    second = installed(wheels[1], tmp_path / "site", said)
    other = {name for name in first if first[name] != second.get(name)}
    assert any(differs in name for name in other)


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
