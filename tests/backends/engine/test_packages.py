"""Running uv and pip: what is handed on, what is fallen back to, what is said when both fail."""

import json
import os
import sys
import sysconfig
from pathlib import Path

import pytest

from backends.engine.packages import (
    DEBIAN_WHEELS,
    InstallError,
    PackageInstaller,
    direct_pip,
    find_installer,
    find_pip,
    read_pip_config,
    run,
    uv_places,
)


def script(path: Path, body: str) -> Path:
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return path


def test_pips_settings_become_uvs_variables():
    listing = (
        "global.index-url='https://mirror.example/simple'\n"
        "global.find-links='/wheels https://a.example/b'\n"
        "install.timeout='5'\n"
        "user.extra-index-url='https://x.example https://y.example'\n"
        "broken line\nglobal.cert=unquoted\n"
        ":env:.index-url='https://wins.example/simple'\n"
    )
    assert read_pip_config(listing) == {
        "UV_DEFAULT_INDEX": "https://wins.example/simple",
        "UV_FIND_LINKS": "/wheels,https://a.example/b",
        "UV_INDEX": "https://x.example https://y.example",
    }


def test_a_persons_own_uv_settings_win(tmp_path):
    pip = script(tmp_path / "pip", "echo \"global.index-url='https://mirror.example'\"\n")
    assert uv_places([str(pip)], {})["UV_DEFAULT_INDEX"] == "https://mirror.example"
    assert "UV_DEFAULT_INDEX" not in uv_places([str(pip)], {"UV_INDEX_URL": "https://own"})
    assert "UV_DEFAULT_INDEX" not in uv_places([str(pip)], {"UV_DEFAULT_INDEX": "https://own"})
    assert uv_places(None, {}) == {}


def test_what_uv_downloads_becomes_a_fraction(tmp_path):
    uv = script(
        tmp_path / "uv",
        'echo "Downloading torch (30.0MiB)"\necho "Downloading numpy (10.0MiB)"\n'
        'echo " Downloaded numpy"\necho " Downloaded torch"\necho " + torch==1"\n',
    )
    said = []
    installer = PackageInstaller(Path(sys.executable), uv, None)
    installer.install_files([Path("x.whl")], lambda text, fraction: said.append((text, fraction)))
    assert [fraction for _, fraction in said] == [0.0, 0.0, 0.25, 1.0]


def test_a_lock_is_installed_whole_and_by_hash(tmp_path):
    uv = script(tmp_path / "uv", f'echo "$@" >> {tmp_path}/words\n')
    PackageInstaller(Path("/env/python"), uv, None).install_lock(Path("set.lock"), lambda *_: None)
    words = (tmp_path / "words").read_text().split()
    assert words[:4] == ["pip", "install", "--python", "/env/python"]
    assert {"--no-deps", "--require-hashes", "--only-binary"} <= set(words)


def test_pip_takes_over_where_uv_fails(tmp_path):
    uv = script(tmp_path / "uv", "echo 'no route'; exit 2\n")
    pip = script(tmp_path / "pip", f'echo "$@" >> {tmp_path}/words\n')
    installer = PackageInstaller(Path("/env/python"), uv, (str(pip),))
    installer.install_lock(Path("set.lock"), lambda *_: None)
    calls = (tmp_path / "words").read_text().splitlines()
    assert calls[-1].startswith("--python /env/python install --no-input --no-deps")


def test_when_both_fail_the_last_lines_are_said(tmp_path):
    tool = script(tmp_path / "tool", "echo 'hash mismatch for torch'; exit 1\n")
    with pytest.raises(InstallError, match="hash mismatch for torch"):
        PackageInstaller(Path("/p"), tool, (str(tool),)).install_lock(Path("x"), lambda *_: None)


@pytest.mark.parametrize("with_uv", [True, False])
def test_an_environment_is_made_with_uv_or_without(tmp_path, with_uv):
    uv = find_installer(Path("/p")).uv if with_uv else None
    if with_uv and uv is None:
        pytest.skip("uv is missing: pip install uv")
    PackageInstaller(tmp_path / "e" / "bin" / "python", uv, None).make_environment(tmp_path / "e")
    code, text = run([str(tmp_path / "e" / "bin" / "python"), "-c", "print(6 * 7)"], os.environ)
    assert (code, text) == (0, "42")


def test_an_environment_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InstallError, match="no virtual environment"):
        PackageInstaller(Path("/p"), None, None).make_environment(tmp_path / "file" / "inside")


@pytest.fixture
def no_pip(tmp_path, monkeypatch) -> Path:
    """A Python without a pip; wheels of one would be in the folder that it returns."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("backends.engine.packages.DEBIAN_WHEELS", tmp_path)
    return tmp_path


def test_a_pip_that_is_too_old_is_not_taken(no_pip):
    assert find_pip() is None
    script(no_pip / "pip3", "echo 'pip 20.1 from /old'\n")
    (no_pip / "pip-20.3.4-py2.py3-none-any.whl").touch()
    assert find_pip() is None
    script(no_pip / "pip3", "echo 'pip 22.3 from /new'\n")
    assert find_pip() == ("pip3",)
    (no_pip / "pip-23.2.1-py3-none-any.whl").touch()
    assert find_pip() == (sys.executable, f"{no_pip}/pip-23.2.1-py3-none-any.whl/pip")


def bundled_pip() -> tuple[str, str]:
    folder = Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled"
    wheels = [*folder.glob("pip-*.whl"), *DEBIAN_WHEELS.glob("pip-*.whl")]
    return sys.executable, f"{wheels[0]}/pip"


@pytest.mark.parametrize("find", [find_pip, bundled_pip], ids=["installed", "wheel"])
def test_a_pip_works_on_another_environment_in_one_process(tmp_path, find):
    """It says itself for which Python it runs."""
    place = tmp_path / "e"
    python = place / "bin" / "python"
    PackageInstaller(python, None, None).make_environment(place)
    pip = find()
    assert pip is not None
    code, text = run([*direct_pip(pip, python), "inspect", "--local"], os.environ, keep_lines=500)
    assert code == 0, text
    seen = json.loads(text[text.index("{") :])
    assert {entry["metadata"]["name"] for entry in seen["installed"]} <= {"pip"}
    assert run([str(python), "-c", "import pip"], os.environ)[0] == 1


def test_a_pip_of_its_own_command_is_told_the_environment():
    assert direct_pip(("pip3",), Path("/e/python")) == ["pip3", "--python", "/e/python"]


def test_a_command_that_is_not_there_is_a_code_not_a_crash():
    code, text = run(["/nowhere/tool"], {})
    assert code == 127
    assert "/nowhere/tool" in text


def test_only_the_last_lines_are_kept():
    program = "print('\\n'.join(map(str, range(100))))"
    code, tail = run([sys.executable, "-c", program], {}, keep_lines=3)
    assert (code, tail) == (0, "97\n98\n99")
