"""Packing: what is in a bundle, what is asked for wrongly, what is kept when it breaks."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from backends.engine.packages import InstallError
from backends.engine.packing.lockfile import LockedPackage
from backends.engine.packing.pack import driver_of, pack, target_for
from backends.engine.packing.unpack import read_manifest


def test_a_bundle_names_every_file_with_its_hash(bundle: Path, packed: Path):
    manifest = read_manifest(bundle)
    names = [entry["path"] for entry in manifest["files"]]
    assert "wheels/vllm-0.32.0-py3-none-any.whl" in names
    assert "models/tiny/config.json" in names
    assert not [name for name in names if "elsewhere" in name]  # another system's
    wheel = packed.parent / "index" / "vllm-0.32.0-py3-none-any.whl"
    entry = next(file for file in manifest["files"] if file["path"].endswith(wheel.name))
    assert entry["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert (manifest["vllm"], manifest["driver"], manifest["glibc"]) == ("0.32.0", 580, "2.5")
    assert manifest["installed_bytes"] > 9**7
    assert not bundle.with_name("bundle.fetched").exists()


def test_a_wheel_of_another_hash_is_refused_and_the_others_are_kept(request_of, places: Path):
    wheel = places / "vllm-0.32.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    request = request_of()
    with pytest.raises(
        InstallError, match="wheels could not be fetched; downloaded wheels are kept"
    ):
        pack(request, lambda *_: None)
    assert not (request.out / "manifest.json").exists()


@pytest.mark.parametrize(
    ("python", "glibc", "said"),
    [("3.9", "2.34", "3.11, 3.12, 3.13"), ("3.12", "musl", "--glibc musl: a version such as")],
)
def test_targets_that_no_set_is_for_are_refused(python: str, glibc: str, said: str):
    with pytest.raises(InstallError, match=said):
        target_for(python, glibc=glibc)


def test_a_folder_that_is_no_model_is_refused_before_anything_is_fetched(request_of, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InstallError, match=r"not a model folder, config\.json is missing"):
        pack(request_of(model=tmp_path / "empty"), lambda *_: pytest.fail("it went on"))


def test_a_cuda_that_is_not_known_is_no_guess():
    with pytest.raises(InstallError, match=r"CUDA 99\.1: its minimum driver version is unknown"):
        driver_of([LockedPackage("nvidia-cuda-runtime", "99.1", frozenset())])
    with pytest.raises(InstallError, match="pack with --flavour cpu"):
        driver_of([])


def test_a_file_in_the_bundles_place_is_told_before_anything_is_fetched(request_of, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InstallError, match="notes is a file: name a folder"):
        pack(request_of(out=tmp_path / "notes"), lambda *_: pytest.fail("it went on"))
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_disk_that_fills_after_the_fetching_is_told(request_of):
    def full(_: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    request = request_of(own=full)
    with pytest.raises(InstallError, match=r"fetched: No space left .* the same command goes on"):
        pack(request, lambda *_: None)
    assert (request.out.with_name(f"{request.out.name}.fetched") / "wheels").is_dir()
