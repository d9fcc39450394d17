"""Conditions of a lock, judged for the host that a bundle goes to."""

from pathlib import Path

import pytest

from backends.engine.install import lock_folder
from backends.engine.packages import InstallError
from backends.engine.packing.lockfile import WheelPlatform, applies, read_lock


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("python_full_version < '3.12'", True),
        ("python_full_version >= '3.12'", False),
        ("python_version == '3.11' and sys_platform == 'linux'", True),
        ("(platform_machine == 'aarch64' and sys_platform == 'linux') or os_name == 'nt'", False),
        ("platform_python_implementation != 'PyPy'", True),
        ("implementation_name == 'pypy' or sys_platform == 'emscripten'", False),
    ],
)
def test_conditions(marker: str, holds: bool):
    assert applies(marker, WheelPlatform("3.11")) is holds


def test_versions_are_numbers_and_no_words():
    assert applies("python_full_version < '3.9'", WheelPlatform("3.11")) is False
    assert applies("python_full_version >= '3.9'", WheelPlatform("3.11")) is True


@pytest.mark.parametrize("marker", ["extra == 'x'", "import os", "sys_platform < 3", "f()"])
def test_what_is_not_understood_is_said(marker: str):
    with pytest.raises(InstallError, match="unsupported marker"):
        applies(marker, WheelPlatform("3.11"))


@pytest.mark.parametrize("flavour", ["cpu", "cuda"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_products_own_sets_are_understood(flavour: str, python: str):
    found = read_lock(lock_folder(flavour) / "requirements.lock", WheelPlatform(python))
    names = [finding.name for finding in found]
    assert len(names) == len(set(names)) > 100  # one version of each is left
    assert "pywin32" not in names
    assert all(finding.sha256 for finding in found)


def test_a_line_without_a_hash_is_refused(tmp_path: Path):
    (tmp_path / "lock").write_text("vllm==1.0\n")
    with pytest.raises(InstallError, match="vllm has no hash"):
        read_lock(tmp_path / "lock", WheelPlatform("3.11"))
