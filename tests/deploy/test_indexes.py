"""pip's configuration read without pip, and a wheel fetched by hash without pip."""

import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.indexes import Places, configured, fetch_wheel

WHEEL = b"a wheel"
LOCK = (
    "other==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    "pip==26.3 \\\n    --hash=sha256:" + "1" * 64 + " \\\n"
    "    --hash=sha256:" + hashlib.sha256(WHEEL).hexdigest() + "\n"
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_files_and_variables_in_pips_order(tmp_path: Path) -> None:
    write(tmp_path / "etc/pip.conf", "[global]\nindex-url = machine\ncert = /machine.pem\n")
    write(
        tmp_path / "home/.config/pip/pip.conf",
        "[global]\nindex-url = user\nextra-index-url = one\n  two\n[install]\nfind-links = /wheels",
    )
    environ = {"PIP_TRUSTED_HOST": "mirror", "PIP_FIND_LINKS": "/a /b"}
    places = configured(environ, home=tmp_path / "home", machine=tmp_path / "etc")
    assert places == Places("user", ("one", "two"), ("/a", "/b"), "/machine.pem", ("mirror",))
    places = configured({"PIP_INDEX_URL": "mine"}, home=tmp_path / "home", machine=tmp_path)
    assert places.index == "mine"


@pytest.mark.parametrize("text", ["", "no section", "[global\n", "\0"])
def test_a_damaged_file_is_no_obstacle(tmp_path: Path, text: str) -> None:
    write(tmp_path / "pip.conf", text)
    assert configured({}, home=tmp_path, machine=tmp_path) == Places()


def test_uv_is_told_what_pip_knows_and_a_persons_own_settings_win() -> None:
    places = Places("main", ("more",), ("/wheels",), "/ca.pem", ("mirror",))
    arguments = places.uv_arguments({})
    for pair in (("--default-index", "main"), ("--index", "more"), ("--find-links", "/wheels")):
        at = arguments.index(pair[0])
        assert arguments[at + 1] == pair[1]
    assert places.uv_environment({}) == {"SSL_CERT_FILE": "/ca.pem"}
    own = {"UV_DEFAULT_INDEX": "x", "UV_INDEX": "y", "SSL_CERT_FILE": "z"}
    assert "main" not in places.uv_arguments(own)
    assert "more" not in places.uv_arguments(own)
    assert places.uv_environment(own) == {}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A simple index on loopback with one good wheel among others."""
    page = "".join(
        f'<a href="../../files/{name}#sha256=x">{name}</a>'
        for name in ("pip-26.3.tar.gz", "pip-26.3-py3-none-any.whl", "pip-99-py3-none-any.whl")
    )
    write(tmp_path / "simple/pip/index.html", page)
    (tmp_path / "files").mkdir()
    (tmp_path / "files/pip-26.3-py3-none-any.whl").write_bytes(WHEEL)
    (tmp_path / "files/pip-99-py3-none-any.whl").write_bytes(b"something else")
    handler = functools.partial(Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()
    thread.join()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def test_the_wheel_with_the_locked_hash_is_taken(index: str, tmp_path: Path) -> None:
    found = fetch_wheel(Places(index), LOCK, "pip", tmp_path / "out")
    assert found is not None
    assert found.name == "pip-26.3-py3-none-any.whl"
    assert found.read_bytes() == WHEEL


def test_another_file_under_the_same_name_is_refused(index: str, tmp_path: Path) -> None:
    forged = LOCK.replace(hashlib.sha256(WHEEL).hexdigest(), "2" * 64)
    assert fetch_wheel(Places(index), forged, "pip", tmp_path / "out") is None


def test_a_folder_of_wheels_will_do(tmp_path: Path) -> None:
    (tmp_path / "pip-26.3-py3-none-any.whl").write_bytes(WHEEL)
    for place in (str(tmp_path), tmp_path.as_uri()):
        places = Places(find_links=(place,))
        assert fetch_wheel(places, LOCK, "pip", tmp_path / "out") is not None


def test_an_unreachable_index_is_an_answer(tmp_path: Path, free_port: int) -> None:
    places = Places(f"http://127.0.0.1:{free_port}/simple", extra=("nonsense",))
    assert fetch_wheel(places, LOCK, "pip", tmp_path) is None
