"""Looking for torch's CPU build with the real pip, in folders and on an index made here."""

import hashlib
import http.server
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.engine.packages import InstallError, find_pip
from backends.engine.torchwheel import WheelSearch, fetch, known_hashes

VERSION = "2.13.0+cpu"


@pytest.fixture(autouse=True)
def no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip without the configuration of this machine, and with nothing to reach."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")


def wheel(folder: Path, tag: str = "py3-none-any") -> Path:
    """A wheel that pip believes in, under torch's name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{VERSION}-{tag}.whl"
    info = f"torch-{VERSION}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def search(folder: Path, **options: object) -> WheelSearch:
    defaults = {"index": "http://127.0.0.1:9/whl/cpu", "known_sha256": frozenset()}
    return WheelSearch(Path(sys.executable), find_pip(), folder, **defaults | options)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """An index with one wheel, as PyTorch's: a page of links that carry their hash."""
    file = wheel(tmp_path / "www" / "torch")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    name = file.name.replace("+", "%2B")
    page = f'<a href="{name}#sha256={digest}">{file.name}</a>'
    (file.parent / "index.html").write_text(page)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "www"))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_wheel_in_a_folder_that_was_named_is_taken(tmp_path):
    wheel(tmp_path / "wheels")
    found = fetch(search(tmp_path / "to", find_links=(str(tmp_path / "wheels"),)), lambda *_: None)
    assert found == tmp_path / "to" / f"torch-{VERSION}-py3-none-any.whl"


def test_a_wheel_in_pips_configured_places_is_taken(tmp_path, monkeypatch):
    wheel(tmp_path / "wheels")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    assert fetch(search(tmp_path / "to"), lambda *_: None) is not None


def test_then_pytorchs_index_is_asked(tmp_path, index):
    said = []
    found = fetch(search(tmp_path / "to", index=index), lambda text, _: said.append(text))
    assert found is not None
    assert said[:2] == ["in pip's configured places", f"at {index}"]


def test_nobody_has_it_for_this_python(tmp_path):
    wheel(tmp_path / "wheels", "cp39-cp39-manylinux_2_28_x86_64")
    places = (str(tmp_path / "wheels"),)
    assert fetch(search(tmp_path / "to", find_links=places), lambda *_: None) is None


def test_a_place_that_is_silent_costs_ten_seconds_and_no_second_try(tmp_path, monkeypatch):
    commands = []

    def refuse(command: list[str], *_: object) -> tuple[int, str]:
        commands.append(command)
        return 1, "timed out"

    monkeypatch.setattr("backends.engine.torchwheel.run", refuse)
    assert fetch(search(tmp_path / "to"), lambda *_: None) is None
    assert len(commands) == 2
    for command in commands:
        assert command[command.index("--timeout") + 1] == "10"
        assert command[command.index("--retries") + 1] == "0"


def test_a_locked_build_with_another_hash_is_refused(tmp_path, monkeypatch):
    tag = "cp311-cp311-manylinux_2_28_x86_64"
    file = wheel(tmp_path / "wheels", tag)
    monkeypatch.setattr("backends.engine.torchwheel._download", lambda *_: file)
    good = hashlib.sha256(file.read_bytes()).hexdigest()
    assert fetch(search(tmp_path / "to", known_sha256=frozenset({good})), lambda *_: None) == file
    with pytest.raises(InstallError, match="not the locked file"):
        fetch(search(tmp_path / "to", known_sha256=frozenset({"0" * 64})), lambda *_: None)
    assert not file.exists()


def test_without_pip_it_cannot_be_fetched(tmp_path):
    nothing = WheelSearch(Path("/p"), None, tmp_path, frozenset())
    with pytest.raises(InstallError, match="pip is needed"):
        fetch(nothing, lambda *_: None)


def test_hashes_are_read_from_the_lock(tmp_path):
    (tmp_path / "torch.lock").write_text(f"torch==1 \\\n    --hash=sha256:{'a' * 64}\n")
    assert known_hashes(tmp_path / "torch.lock") == {"a" * 64}
