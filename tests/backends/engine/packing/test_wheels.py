"""Wheels: fetched once, known by their hash, for the C library that they ask for."""

import hashlib
from pathlib import Path

import pytest

from backends.engine.packages import InstallError, find_pip
from backends.engine.packing.lockfile import LockedPackage, WheelPlatform
from backends.engine.packing.pack import HERE
from backends.engine.packing.wheels import WheelSource, fetch, find_wheel, glibc_of, unpacked_bytes


def entry(wheel: Path, name: str = "tinytool", version: str = "1.0") -> LockedPackage:
    return LockedPackage(name, version, frozenset([hashlib.sha256(wheel.read_bytes()).hexdigest()]))


def test_what_is_there_with_its_hash_is_not_fetched_again(places: Path, tmp_path: Path):
    wanted = [entry(places / "tinytool-1.0-py3-none-any.whl")]
    nobody = WheelSource(("false",))
    with pytest.raises(InstallError):  # the control: without it somebody must be asked
        fetch(wanted, WheelPlatform(HERE), nobody, tmp_path / "got", lambda *_: None)
    pip = find_pip()
    assert pip is not None
    first = fetch(wanted, WheelPlatform(HERE), WheelSource(pip), tmp_path / "got", lambda *_: None)
    again = fetch(wanted, WheelPlatform(HERE), nobody, tmp_path / "got", lambda *_: None)
    assert first == again


def test_a_full_disk_is_told_without_pips_traceback(places: Path, tmp_path: Path):
    full = "OSError: [Errno 28] No space left on device: '/tmp/x'"
    lines = f'Traceback (most recent call last):\n  File "x.py", line 1\n{full}'
    pip = tmp_path / "pip"
    pip.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\nexit 2\n")
    pip.chmod(0o755)
    wanted = [entry(places / "tinytool-1.0-py3-none-any.whl")]
    with pytest.raises(InstallError) as refused:
        fetch(
            wanted, WheelPlatform(HERE), WheelSource((str(pip),)), tmp_path / "got", lambda *_: None
        )
    first, last = str(refused.value).splitlines()
    assert first == "the disk is full: make room, what came is kept and the same command goes on"
    assert last == full


def test_a_broken_wheel_is_removed(places: Path):
    wheel = places / "tinytool-1.0-py3-none-any.whl"
    known = entry(wheel)
    assert find_wheel(known, places) == wheel
    wheel.write_bytes(wheel.read_bytes()[:-1])
    assert find_wheel(known, places) is None
    assert not wheel.exists()


@pytest.mark.parametrize("name", ["Nvidia_CUDA-runtime", "nvidia.cuda.runtime"])
def test_names_are_compared_as_packages_names(places: Path, name: str):
    wheel = places / "nvidia_cuda_runtime-13.0.96-py3-none-any.whl"
    assert find_wheel(entry(wheel, name, "13.0.96"), places) == wheel


def test_the_c_library_is_the_newest_of_the_least_that_each_takes():
    names = [
        "a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "b-1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "c-1-py3-none-any.whl",
        "d-1-cp311-cp311-manylinux2014_x86_64.whl",
    ]
    assert glibc_of([Path(name) for name in names]) == "2.27"
    assert glibc_of([Path(name) for name in names[2:]]) == "2.17"
    assert glibc_of([]) == "2.5"


def test_what_a_wheel_takes_is_known_and_no_wheel_is_told(places: Path, tmp_path: Path):
    assert unpacked_bytes(places / "tinytool-1.0-py3-none-any.whl") > 9**7
    (tmp_path / "x.whl").write_text("no archive")
    with pytest.raises(InstallError, match="is not a wheel"):
        unpacked_bytes(tmp_path / "x.whl")
