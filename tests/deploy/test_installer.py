"""Finding an installer on poor machines, and the one line that names what is missing."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import installer
from deploy.indexes import Places
from deploy.installer import BootstrapError, Installer, explain


def fake(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def poor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose Python has no pip, with nothing on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "executable", str(fake(tmp_path / "python3", "exit 1")))
    monkeypatch.setattr(installer, "SCRATCH", tmp_path / "scratch")
    monkeypatch.setattr(installer, "bundled_wheels", list)
    monkeypatch.setattr(installer, "DEBIAN_WHEELS", tmp_path / "none")
    monkeypatch.setattr(installer.indexes, "configured", lambda *_, **__: Places())
    (tmp_path / "bin").mkdir()
    return tmp_path


def test_nothing_at_all_is_said_in_one_line(poor: Path) -> None:
    with pytest.raises(BootstrapError, match="apt-get install python3-pip") as caught:
        installer.find_installer(poor / ".venv" / "bin" / "python")
    assert "\n" not in str(caught.value)


def test_uv_on_path_is_taken(poor: Path) -> None:
    uv = fake(poor / "bin" / "uv", 'echo "uv 0.13.8"')
    assert installer.find_installer(poor / ".venv" / "bin" / "python").uv == uv


def test_an_old_uv_is_not_taken(poor: Path) -> None:
    fake(poor / "bin" / "uv", 'echo "uv 0.4.30"')
    with pytest.raises(BootstrapError):
        installer.find_installer(poor / ".venv" / "bin" / "python")


def test_a_pip_on_path_is_taken(poor: Path) -> None:
    fake(poor / "bin" / "pip3", 'echo "pip 23.0.1 from here"')
    assert installer.find_pip(Places()) == ("pip3",)


def test_a_pip_without_the_python_option_is_not_taken(poor: Path) -> None:
    fake(poor / "bin" / "pip3", 'echo "pip 22.0.2 from here"')
    assert installer.find_pip(Places()) is None


def test_uv_fails_and_pip_goes_on(tmp_path: Path) -> None:
    uv = fake(tmp_path / "uv", "exit 1")
    pip = fake(tmp_path / "pip", f'echo "$@" > {tmp_path}/said')
    lock = tmp_path / "requirements.lock"
    Installer(uv, (str(pip),), Places()).install(Path("/env/bin/python"), [lock])
    said = (tmp_path / "said").read_text()
    assert said.startswith("--python /env/bin/python install --require-hashes")
    assert f"-r {lock}" in said


def test_both_fail_and_the_cause_is_named(tmp_path: Path) -> None:
    broken = fake(tmp_path / "pip", 'echo "error: command gcc failed"; exit 1')
    with pytest.raises(BootstrapError, match=r"^a compiler is missing: sudo apt-get install"):
        Installer(None, (str(broken),), Places()).install(Path("/env/bin/python"), [])


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("No matching distribution found for x", "no wheel for this machine"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "not the locked one"),
        ("Hash mismatch. Computed: sha256:fdc314077dcc183b079c", "not the locked one"),
        ("Connection refused", "is the package index reachable"),
    ],
)
def test_causes(output: str, line: str) -> None:
    assert line in explain(output)


def test_the_environment_has_no_pip_and_is_kept_when_it_works(tmp_path: Path) -> None:
    python = installer.make_environment(tmp_path / "env" / "bin" / "python")
    run = subprocess.run([python, "-c", "import pip"], check=False, capture_output=True)
    assert run.returncode != 0
    marker = tmp_path / "env" / "marker"
    marker.touch()
    assert installer.make_environment(python) == python
    assert marker.exists()
    python.unlink()
    installer.make_environment(python)
    assert python.exists()
    assert not marker.exists()


def test_a_locked_hash_is_really_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control on the real installer: the right file with the wrong hash is refused."""
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    builder = (
        "import zipfile; z = zipfile.ZipFile('thing-1.0-py3-none-any.whl', 'w')\n"
        "z.writestr('thing.py', ''); d = 'thing-1.0.dist-info/'\n"
        "z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n')\n"
        "z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n'\n"
        "    'Tag: py3-none-any\\n')\n"
        "z.writestr(d + 'RECORD', ''); z.close()"
    )
    subprocess.run([sys.executable, "-c", builder], check=True, cwd=tmp_path)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    index = tmp_path / "index"  # an empty one: nobody is asked for a package of that name
    index.mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.as_uri())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    python = installer.make_environment(tmp_path / "env" / "bin" / "python")
    uv = Path(sys.executable).parent / "uv"
    tool = Installer(uv, None, Places(find_links=(str(tmp_path),)))
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"thing==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BootstrapError, match="not the locked one"):
        tool.install(python, [lock])
    lock.write_text(f"thing==1.0 --hash=sha256:{digest}\n")
    tool.install(python, [lock])
    subprocess.run([python, "-c", "import thing"], check=True)
