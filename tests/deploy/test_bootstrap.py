"""The bootstrap's own logic: what counts as installed, and what it hands on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import bootstrap
from deploy.parts import UNAVAILABLE
from gateway.host.stages import VARIABLE, StartStages

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stages() -> StartStages:
    return StartStages(clock=lambda: 0.0, say=lambda _: None)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed-looking copy: lock files, stamp, interpreter and command."""
    for name in ("deploy/tools.lock", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name in ("python", "breakeven"):
        (binaries / name).touch()
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "PYTHON", binaries / "python")
    monkeypatch.setattr(bootstrap, "STAMP", tmp_path / ".venv" / "stamp.json")
    locks = (tmp_path / "deploy/tools.lock", tmp_path / "requirements.lock")
    monkeypatch.setattr(bootstrap, "PRODUCT", locks)
    files = [*locks, tmp_path / "pyproject.toml"]
    record = {bootstrap.key(path): bootstrap.digest(path) for path in files}
    bootstrap.STAMP.write_text(json.dumps(record), encoding="utf-8")
    return tmp_path


def test_what_is_started_keeps_its_bytecode_out_of_the_sources() -> None:
    wanted = bootstrap.keeping_bytecode({"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/h"})
    beside = str(bootstrap.PYTHON.parent.parent / "bytecode")
    assert wanted == {"HOME": "/h", "PYTHONPYCACHEPREFIX": beside}
    chosen = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/mine"}
    assert bootstrap.keeping_bytecode(chosen) == {"PYTHONPYCACHEPREFIX": "/mine"}
    assert bootstrap.keeping_bytecode({"HOME": "/h"}) == {"HOME": "/h"}


def test_what_a_first_start_imports_is_compiled_ahead(tmp_path, monkeypatch) -> None:
    """Else each of its processes compiles it beside the others; what is missing ends nothing."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.setattr(bootstrap, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(bootstrap, "COMPILED", ("there.is_no_such_module", "gateway.followers"))
    bootstrap.compile_ahead()
    assert list(tmp_path.rglob("followers.*.pyc"))


def test_what_is_compiled_ahead_exists() -> None:
    for modules in bootstrap.COMPILED:
        for name in modules.split(", "):
            assert (ROOT / (name.replace(".", "/") + ".py")).exists(), name


def test_an_installed_clone_is_left_alone(clone: Path, stages: StartStages) -> None:
    assert bootstrap.install(stages, testing=False) is None
    assert stages.done == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda root: (root / "requirements.lock").write_text("other==1\n"),
        lambda root: (root / "pyproject.toml").write_text(""),
        lambda root: (root / ".venv" / "bin" / "breakeven").unlink(),
        lambda root: (root / ".venv" / "bin" / "python").unlink(),
        lambda root: (root / ".venv" / "stamp.json").unlink(),
        lambda root: (root / ".venv" / "stamp.json").write_text("{"),
    ],
)
def test_any_difference_is_noticed(clone: Path, damage) -> None:
    names = ("deploy/tools.lock", "requirements.lock", "pyproject.toml")
    assert all(bootstrap.is_stamped(clone / name) for name in names)
    damage(clone)
    assert not all(bootstrap.is_stamped(clone / name) for name in names)


def test_the_count_is_of_packages_not_of_lines(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(
        "numpy==1 ; python_full_version < '3.12' \\\n    --hash=sha256:aa\n"
        "numpy==2 ; python_full_version >= '3.12' \\\n    --hash=sha256:bb\nuv==3\n"
    )
    assert bootstrap.count([lock]) == 2


def test_the_product_replaces_the_bootstrap_and_gets_its_stages() -> None:
    script = f"""
import sys
from deploy.bootstrap import exec_product
from gateway.host.stages import StartStages
stages = StartStages(clock=lambda: 0.0, say=print)
stages.done = [("environment", 1.5)]
exec_product([sys.executable, "-c", "import os; print(os.environ['{VARIABLE}'])"], stages)
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert json.loads(answer.stdout) == [["environment", 1.5]]


def test_the_tests_begin_while_what_they_lack_is_installed(
    stages: StartStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the long tier's parts, `make test-long` asks for itself."""
    told: list[object] = []
    monkeypatch.setenv(UNAVAILABLE, "from before")
    monkeypatch.setattr(bootstrap, "install", lambda *_, **__: None)
    monkeypatch.setattr(
        bootstrap, "missing_parts", lambda names, *, late: [] if names or late else ["vllm"]
    )
    monkeypatch.setattr(bootstrap.coming_parts, "begin", lambda parts, _: told.append(parts))
    monkeypatch.setattr(bootstrap, "exec_product", lambda *_: told.append(os.environ[UNAVAILABLE]))
    bootstrap.perform_verb("test", [], stages)
    assert told == [["vllm"], ""]


@pytest.mark.parametrize(
    ("environ", "version", "kept"),
    [
        ({}, "3.9.1", True),
        ({"PYTHON": "this"}, "{0}.{1}.0", True),
        ({"PYTHON": "this"}, "{0}.{1}0.0", False),
        ({"PYTHON": "this"}, "3.9.1", False),
    ],
)
def test_another_python_is_taken_only_when_one_is_named(
    tmp_path: Path, environ: dict[str, str], version: str, kept: bool
) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    assert bootstrap.is_requested_python(python, environ)
    python.parent.mkdir(parents=True)
    settings = f"home = /usr/bin\nversion = {version.format(*sys.version_info)}\n"
    (tmp_path / ".venv" / "pyvenv.cfg").write_text(settings)
    assert bootstrap.is_requested_python(python, environ) is kept


@pytest.mark.parametrize("verb", ["install", "run", "demo", "tools", "test", "parts"])
def test_the_verbs_are_in_the_help(verb: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "deploy.bootstrap", "--help"],
        check=True, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert verb in answer.stdout


def test_bootstrap_needs_nothing_installed() -> None:
    """`-S -I`: no site-packages at all, as on a machine where nothing is installed."""
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import deploy.bootstrap"
    subprocess.run([sys.executable, "-S", "-I", "-c", script], check=True)


def test_a_machine_without_python_is_told_in_one_line(tmp_path: Path) -> None:
    answer = subprocess.run(
        ["/bin/sh", ROOT / "deploy" / "python", "-c", ""],
        env={"PATH": str(tmp_path), "PYTHON": "no-such-python"},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert "apt-get install python3" in answer.stderr


@pytest.mark.parametrize(
    ("version", "taken"), [("3.10", False), ("3.11", True), ("3.14", True), ("3.15", False)]
)
def test_only_suitable_pythons_are_taken(tmp_path: Path, version: str, taken: bool) -> None:
    major, minor = version.split(".")
    fake = tmp_path / "python3"
    fake.write_text(
        f'#!/bin/sh\n[ "$1" = "-c" ] && [ {major}{minor} -ge 311 ] && [ {major}{minor} -le 314 ] '
        '&& exit 0\n[ "$1" = "go" ] && echo taken\nexit 1\n'
    )
    fake.chmod(0o755)
    answer = subprocess.run(
        ["/bin/sh", ROOT / "deploy" / "python", "go"],
        env={**os.environ, "PYTHON": str(fake)}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ("taken" in answer.stdout) is taken
