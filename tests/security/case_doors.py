"""S13 and S15: texts that end a line, a statement or a header, and doors of engines.

A gateway runs with its ledger; whatever a caller may say (model, user, tags, agent, session, query)
says what would be another line of a log, another header or another statement elsewhere.
"""

import contextlib
import io
import json
import logging
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from case import Case, CaseFigures, Given
from parts import ROOT, Stack
from sqlalchemy import text as sql

from gateway import errors
from gateway.control.operations import ROUTES
from gateway.control.roles import ROLES, KeyRole

MARK = "injected"
TEXTS = [
    f"{before}{what}"
    for before in ("", "x", "x' ", 'x" ', "x\\")
    for what in (
        f"\r\n{MARK}: 1", f"\n{MARK}: 1", f"\r{MARK}: 1", f"\r\n\r\n{MARK}", f"\u2028{MARK}: 1",
        f"\x0b{MARK}", f"\x85{MARK}: 1", f"%0d%0a{MARK}: 1", f"\x00{MARK}", f"\x1b[31m{MARK}",
        f"' OR 1=1 -- {MARK}", f"'; DROP TABLE attempts; -- {MARK}", f'" OR ""="{MARK}',
        f"') UNION SELECT secret_hash FROM keys -- {MARK}", f"1; PRAGMA writable_schema=1; {MARK}",
        f"$$; DELETE FROM keys; {MARK} $$", f"%s %(x)s {{0.__class__}} {MARK}",
        f"${{jndi:x}} {MARK}",
    )
]  # fmt: skip
CORPUS = Path(__file__).with_name("corpus") / "engine_paths.txt"


@contextlib.contextmanager
def running(**changes: Any) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), dict(changes)) as stack:
        yield stack


def injected(given: Given) -> CaseFigures:
    """Headers and lines of a log that a caller made, and tables that are not as they were."""
    usual, log = errors.body, io.StringIO()
    texts = TEXTS if given.full else TEXTS[::3]
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    level = root.level
    with running() as stack:
        tables = _tables(stack)
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        if given.broken:
            stack.app.hot.new_id = lambda: f"req_1\r\n{MARK}: 1"
        try:
            wrong = [text for text in texts if _says(stack, text)]
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
            errors.body = usual
        lines = [line for line in log.getvalue().splitlines() if line.startswith(MARK)]
        changed = [] if _tables(stack) == tables else ["the tables are others"]
    size = f"{len(texts)} texts, 5 requests each"
    return CaseFigures(len(wrong) + len(lines), size, tuple(changed))


def _tables(stack: Any) -> list[str]:
    with stack.reader.connect() as connection:
        found = connection.execute(sql("SELECT sql FROM sqlite_master ORDER BY name")).scalars()
        return [str(finding) for finding in found]


def _says(stack: Any, text: str) -> bool:
    """Whether an answer has a header that the text made: asked over a plain socket."""
    plain = text.encode("unicode_escape").decode()  # a header's value is one line, or it is refused
    body = {
        "model": text, "user": text, "metadata": {"tag": text},
        "messages": [{"role": "user", "content": text, "name": text}], "max_tokens": 1,
    }  # fmt: skip
    asked = [
        _raw(stack, body, {}),
        _raw(stack, {**body, "model": "api"}, {}),
        _raw(stack, {**body, "model": f"alpha/{text}"}, {}),
        _raw(stack, {**body, "model": "api"}, {"user-agent": plain, "x-session-id": plain}),
        _raw(stack, {**body, "model": "api"}, {"idempotency-key": plain, "x-request-id": plain}),
    ]
    return any(f"\n{MARK}".encode() in head.lower() for head in asked)


def _raw(stack: Any, body: dict[str, Any], headers: dict[str, str]) -> bytes:
    data = json.dumps(body).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
        f"{lines}connection: close\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    said = b""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection:
        connection.sendall(head.encode() + data)
        while part := connection.recv(65536):
            said += part
    return said.partition(b"\r\n\r\n")[0]


def built_sql(given: Given) -> CaseFigures:
    """Statements that are put together from texts, by the linter that every commit passes."""
    command = [sys.executable, "-m", "ruff", "check", "--select", "S608", "--ignore-noqa"]
    options = ["--output-format", "json", "--no-cache", "--isolated"]
    folders = ["gateway", "backends", "router", "ledger", "dashboard", "migrations"]
    with tempfile.TemporaryDirectory() as folder:
        planted = Path(folder) / "planted.py"
        planted.write_text(
            'def find(c, name):\n    c.execute(f"SELECT * FROM keys WHERE n = {name}")\n'
        )
        places = [str(planted)] if given.broken else folders
        done = subprocess.run(
            [*command, *options, *places], cwd=ROOT, capture_output=True, text=True, check=False
        )
    return CaseFigures(len(json.loads(done.stdout)), f"{len(folders)} packages")


def opened(given: Given) -> CaseFigures:
    """Paths of engines that answer with anything but 404, with an administrator's key."""
    allowed = {name.partition(" ")[2] for name in ROUTES}
    with running() as stack:
        key = stack.key("admin", scopes=tuple(sorted(ROLES[KeyRole.ADMIN]))).token
        if given.broken:
            port = stack.ports["engine"]  # what stands behind, asked directly
            stack.port = port
        listed = CORPUS.read_text(encoding="ascii").splitlines()
        paths = [path for path in listed if path[:1] == "/" and path not in allowed]
        if given.broken:
            paths = ["/metrics", "/health", "/v1/models", "/version", "/_faults"]
        found = [
            f"{method} {path} {status}"
            for path in paths
            for method in ("GET", "POST", "PUT", "DELETE")
            if (status := _status(stack, method, path, key)) not in (404, 400, 405)
        ]
    return CaseFigures(len(found), f"{len(paths)} paths x 4 methods{': ' * bool(found)}{found[:5]}")


def _status(stack: Any, method: str, path: str, key: str) -> int:
    return int(raw_answer(stack, method, path, b"{}", key)[9:12])


def raw_answer(stack: Any, method: str, target: str, body: bytes, key: str | None) -> bytes:
    """Over a socket: no client straightens the path. Nothing where the connection was cut."""
    proof = "" if key is None else f"authorization: Bearer {key}\r\n"
    head = (
        f"{method} {target} HTTP/1.1\r\nhost: g\r\n{proof}content-type: application/json\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    said = b""
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection,
    ):
        connection.sendall(head.encode() + body)
        while part := connection.recv(65536):
            said += part
    return said


CASES = (
    Case("S13", "lines and headers that a caller made", injected, "a request's id is a caller's"),
    Case("S13", "statements made of texts", built_sql, "one is planted"),
    Case("S15", "engine paths that answer", opened, "the engine is asked directly"),
)
