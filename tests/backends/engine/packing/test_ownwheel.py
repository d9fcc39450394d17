"""Our wheel from what runs here: whole, and the same for the same code."""

import zipfile
from pathlib import Path

from backends.engine.packing.ownwheel import own_lock, write_own_wheel


def test_it_holds_what_an_installed_package_needs(tmp_path: Path):
    wheel = write_own_wheel(tmp_path / "a")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
        points = archive.read(f"{info}/entry_points.txt").decode()
    assert "breakeven = gateway.cli.main:main" in points
    for name in (
        "gateway/cli/app.py", "ledger/migrations/env.py", "backends/engine/packing/unpack.py",
        "backends/engine/locks/engine-cpu/requirements.lock",
        "backends/engine/locks/gateway/requirements.lock",
        "backends/engine/training/model/config.json",
    ):  # fmt: skip
        assert name in names
    assert not [name for name in names if "__pycache__" in name]
    assert write_own_wheel(tmp_path / "b").read_bytes() == wheel.read_bytes()


def test_the_lock_of_our_own_packages_is_found():
    assert "fastapi==" in own_lock().read_text()
