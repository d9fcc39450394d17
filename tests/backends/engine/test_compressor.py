"""llm-compressor's folder: where it is looked for, and that it appears whole or not at all."""

from pathlib import Path

import pytest

from backends.engine import compressor
from backends.engine.environment import Environment
from backends.engine.packages import InstallError


class Installer:
    """Writes what a lock would bring, or breaks half-way."""

    def __init__(self, *, breaks: bool = False) -> None:
        self.breaks, self.locks = breaks, []

    def install_lock(self, lock: Path, _say: object, target: Path) -> None:
        self.locks.append(lock)
        (target / "llmcompressor").mkdir(parents=True)
        if self.breaks:
            raise InstallError("no space left")


@pytest.fixture
def place(tmp_path: Path) -> Environment:
    made = Environment(tmp_path / "engine")
    made.python.parent.mkdir(parents=True)
    made.python.touch()
    return made


def install(place: Environment, monkeypatch: pytest.MonkeyPatch, installer: Installer) -> bool:
    monkeypatch.setattr(compressor, "find_installer", lambda _python: installer)
    folder = place.directory.with_name("compressor")
    return compressor.install_compressor(place, folder, lambda _words, _share: None)


def test_it_is_installed_once_from_its_lock(place, tmp_path, monkeypatch):
    installer = Installer()
    assert install(place, monkeypatch, installer)
    assert not install(place, monkeypatch, installer), "it is there"
    (lock,) = installer.locks
    assert "llmcompressor==" in lock.read_text()
    assert [path.name for path in tmp_path.glob("compressor*")] == ["compressor"]


def test_what_breaks_leaves_nothing(place, tmp_path, monkeypatch):
    with pytest.raises(InstallError, match="no space"):
        install(place, monkeypatch, Installer(breaks=True))
    assert not list(tmp_path.glob("compressor*"))


def test_an_engine_must_be_there(tmp_path, monkeypatch):
    with pytest.raises(InstallError, match="breakeven engine install"):
        install(Environment(tmp_path / "none"), monkeypatch, Installer())


def test_the_engine_may_have_it_itself(place, tmp_path):
    assert not compressor.has_compressor(place, tmp_path / "none")
    (place.directory / "lib" / "python3.12" / "site-packages" / "llmcompressor").mkdir(parents=True)
    assert compressor.has_compressor(place, tmp_path / "none")
