"""The wheel works away from the repository: imports, migrations and engine locks come from it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    wheel = next((folder / "dist").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(unpacked: Path, script: str) -> str:
    """Run with the wheel's files in front and the checkout taken off the path."""
    prelude = (
        f"import sys; sys.path[:] = [p for p in sys.path if p != {str(ROOT)!r}]\n"
        f"sys.path.insert(0, {str(unpacked)!r})\n"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-c", prelude + script],
        check=False, cwd="/", capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_the_shipped_model_is_in_it(unpacked: Path) -> None:
    script = (
        "from backends.engine import shipped\n"
        "print((shipped.DIRECTORY / 'model.safetensors').stat().st_size)"
    )
    assert int(run(unpacked, script)) > 5_000_000


def test_only_our_packages_are_in_it(unpacked: Path) -> None:
    ours = {"gateway", "backends", "router", "ledger", "dashboard"}
    assert {path.name for path in unpacked.iterdir() if ".dist-info" not in path.name} == ours


@pytest.mark.parametrize("name", ["gateway", "backends", "router", "ledger", "dashboard"])
def test_packages_come_from_the_wheel_and_are_typed(unpacked: Path, name: str) -> None:
    assert run(unpacked, f"import {name}; print({name}.__file__)").startswith(str(unpacked))
    assert (unpacked / name / "py.typed").exists()


def test_the_command_starts(unpacked: Path) -> None:
    script = "sys.argv = ['breakeven', '--help']\nfrom gateway.cli.main import main\nmain()"
    assert "serve" in run(unpacked, script)


def test_migrations_and_engine_locks_are_in_it(unpacked: Path) -> None:
    assert (unpacked / "ledger/migrations/env.py").exists()
    assert any((unpacked / "ledger/migrations/versions").glob("*.py"))
    for flavour in ("cpu", "cuda"):
        script = (
            "from backends.engine.install import lock_folder\n"
            f"print(lock_folder({flavour!r}) / 'requirements.lock')"
        )
        path = Path(run(unpacked, script).strip())
        assert path.is_relative_to(unpacked)
        assert path.exists()
