"""Unpacking where nothing can be fetched: whole, interrupted, changed, on hosts that do not fit."""

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backends.engine.packing import unpack as module
from backends.engine.packing.unpack import (
    UnpackError,
    check_host,
    extract,
    offline_environ,
    part_spans,
    read_manifest,
    unpack,
)


def quiet(*_: object) -> None:
    pass


# What it was made from lies in no place that the target's settings name.
def test_a_bundle_installs_itself_without_a_network(bundle: Path, tmp_path: Path):
    alone = ["unshare", "-n"] if os.geteuid() == 0 and shutil.which("unshare") else []
    words = [*alone, "sh", str(bundle / "install.sh"), "--to", str(tmp_path / "there")]
    environ = {"PATH": os.environ["PATH"], "PYTHON": sys.executable}
    done = subprocess.run(
        [*words, "--no-gpu-check"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    there = tmp_path / "there"
    assert "vLLM 0.32.0 (cuda)" in done.stdout
    assert (there / "models" / "tiny" / "config.json").read_text() == "{}"
    told = (there / "engine" / "breakeven-engine.json").read_text()
    assert "'--flavour', 'cuda'" in told
    python = there / "venv" / "bin" / "python"
    assert subprocess.run([python, "-c", "import tinytool"], check=False).returncode == 0


def test_a_missing_part_is_named_and_the_rest_goes_on_with_it(bundle: Path, tmp_path: Path):
    manifest = read_manifest(bundle)
    assert len(manifest["parts"]) > 3
    (bundle / "part.002").rename(tmp_path / "kept")
    with pytest.raises(
        UnpackError, match=r"copy them, then repeat the command\n  part.002 is missing$"
    ):
        extract(bundle, manifest, tmp_path / "there", quiet)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "there").rglob("*.whl")}
    assert before  # files of other parts are there already
    (tmp_path / "kept").rename(bundle / "part.002")
    extract(bundle, manifest, tmp_path / "there", quiet)
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "there").rglob("*.whl")}
    assert len(after) > len(before)
    assert {path: after[path] for path in before} == before


def test_a_part_cut_short_is_named_with_its_size(bundle: Path, tmp_path: Path):
    with (bundle / "part.001").open("r+b") as part:
        part.truncate(10)
    with pytest.raises(UnpackError, match=r"part.001 has 10 of 1048576 bytes"):
        extract(bundle, read_manifest(bundle), tmp_path / "there", quiet)


def test_a_changed_byte_is_told_by_file_and_part(bundle: Path, tmp_path: Path):
    with (bundle / "part.001").open("r+b") as part:
        part.seek(5000)
        byte = part.read(1)
        part.seek(5000)
        part.write(bytes([byte[0] ^ 1]))
    with pytest.raises(UnpackError, match=r"not as it was packed: part.001 changed on the way"):
        extract(bundle, read_manifest(bundle), tmp_path / "there", quiet)
    assert not list((tmp_path / "there").rglob("*.partial"))


def test_what_an_earlier_run_left_broken_is_made_anew(bundle: Path, tmp_path: Path):
    manifest, there = read_manifest(bundle), tmp_path / "there"
    extract(bundle, manifest, there, quiet)
    wheel = next(there.glob("wheels/vllm-*.whl"))
    good = wheel.read_bytes()
    wheel.write_bytes(b"?" + good[1:])
    extract(bundle, manifest, there, quiet)
    assert wheel.read_bytes() == good


def test_a_disk_without_room_is_said_before_anything_is_written(bundle, tmp_path, monkeypatch):
    usage = shutil._ntuple_diskusage(10**6, 10**6 - 10, 10)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UnpackError, match=r"0\.0 GB free and .* GB are needed: make room, or"):
        unpack(bundle, tmp_path / "there", quiet, gpu=False)
    assert list((tmp_path / "there").iterdir()) == []


def test_a_disk_that_fills_meanwhile_is_said(bundle, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path))

    monkeypatch.setattr(module, "_extract_file", full)
    with pytest.raises(
        UnpackError, match=r"the disk of .* is full: free space, then repeat the command"
    ):
        unpack(bundle, tmp_path / "there", quiet, gpu=False)


def manifest_for_here(**changes: object) -> dict[str, object]:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {
        "python": here, "machine": platform.machine(), "glibc": "2.5", "driver": None,
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"python": "3.9"}, r"packed for Python 3\.9, this is .*PYTHON=python3\.9 sh install\.sh"),
        ({"machine": "riscv64"}, r"packed for riscv64, this is "),
        ({"glibc": "2.99"}, r"needs glibc 2\.99 or newer, this host has 2\."),
        ({"driver": 580}, r"nvidia-smi finds none here: install the driver"),
    ],
)
def test_a_host_that_does_not_fit_is_told_why(monkeypatch, changes, said):
    monkeypatch.setattr(module, "driver", lambda: "")
    check_host(manifest_for_here())  # the control: this one fits
    with pytest.raises(UnpackError, match=said):
        check_host(manifest_for_here(**changes))


def test_an_old_driver_is_told_with_both_numbers(monkeypatch):
    monkeypatch.setattr(module, "driver", lambda: "535.104.05")
    with pytest.raises(UnpackError, match=r"driver 580 or newer, this host has 535\.104\.05"):
        check_host(manifest_for_here(driver=580))
    check_host(manifest_for_here(driver=580), gpu=False)
    monkeypatch.setattr(module, "driver", lambda: "580.65.06")
    check_host(manifest_for_here(driver=580))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda known: known["files"][0].update(path="../../etc/passwd"), "leads out of"),
        (lambda known: known["files"][0].update(path="/etc/passwd"), "leads out of"),
        (lambda known: known["parts"][0].update(name="../part.000"), "is not a valid part name"),
        (lambda known: known["files"][0].pop("sha256"), "cannot be read: 'sha256'"),
        (lambda known: known.update(format=2), "has format 2, this reads 1"),
    ],
)
def test_a_manifest_that_cannot_be_trusted_is_refused(bundle: Path, change, said: str):
    known = json.loads((bundle / "manifest.json").read_text())
    change(known)
    (bundle / "manifest.json").write_text(json.dumps(known))
    with pytest.raises(UnpackError, match=said):
        read_manifest(bundle)


def test_an_unfinished_or_other_manifest_is_told(bundle: Path):
    with pytest.raises(UnpackError, match="differs from the packed file: copy it again"):
        read_manifest(bundle, "0" * 64)
    (bundle / "manifest.json").unlink()
    with pytest.raises(
        UnpackError, match="is missing: packing was interrupted, or the file was not copied"
    ):
        read_manifest(bundle)


def test_stretches_cross_parts():
    parts = [{"name": "a", "size": 4}, {"name": "b", "size": 4}, {"name": "c", "size": 1}]
    found = [
        (part["name"], begin, size) for part, begin, size in part_spans({"parts": parts}, 3, 6)
    ]
    assert found == [("a", 3, 1), ("b", 0, 4), ("c", 0, 1)]


def test_no_setting_of_the_host_brings_an_index_back(tmp_path: Path):
    environ = offline_environ(
        {"PIP_INDEX_URL": "http://x", "UV_INDEX": "y", "HOME": "/h"}, tmp_path
    )
    assert "PIP_INDEX_URL" not in environ
    assert "UV_INDEX" not in environ
    assert environ["HOME"] == "/h"
    assert environ["PIP_NO_INDEX"] == environ["UV_OFFLINE"] == "1"
