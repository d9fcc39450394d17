"""Plans, steps and endings with the members that traces and histograms look at; odd collectors."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from ledger.journals.records import AttemptSettled, TokenCounts
from router.reasons import Reason
from router.request_kinds import RequestKind

PART = b"x" * 65_536
PARTS = 400  # 25 MiB: far more than the buffers between both ends
PATIENCE_S = 20.0


class AnsweringCollector(ThreadingHTTPServer):
    """`way`: how it answers. `sent`: bytes of the body that it got rid of; `left`: who hung up."""

    daemon_threads, whole = True, PARTS * len(PART)

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.way, self.sent, self.connections = "well", 0, 0
        self.asked: list[tuple[str, str | None]] = []  # for what, and as whom
        self.left, self.over = threading.Event(), threading.Event()
        self.base = f"http://127.0.0.1:{self.server_address[1]}"
        self.url = f"{self.base}/v1/traces"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AnsweringCollector

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append((self.path, self.headers["authorization"]))
        getattr(self, self.server.way)()

    def well(self) -> None:
        self._head(200, "content-length", "2")
        self.wfile.write(b"{}")

    def chunked(self) -> None:
        self._head(200, "transfer-encoding", "chunked")
        self.wfile.write(b"2\r\n{}\r\n0\r\n\r\n")

    def busy(self) -> None:
        self.send_response(503)
        self.send_header("retry-after", "7")
        self._head(None, "content-length", "0")

    def elsewhere(self) -> None:
        self.send_response(307)
        self.send_header("location", self.server.url)
        self._head(None, "content-length", "0")

    def endless(self) -> None:
        self._head(200, "transfer-encoding", "chunked")
        try:
            for _ in range(PARTS):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(PART), PART))
                self.server.sent += len(PART)
        except OSError:
            self.server.left.set()

    def trickling(self) -> None:
        self._head(200, "content-length", "1000")
        self.wfile.write(b"{")
        self.server.over.wait(PATIENCE_S)

    def _head(self, status: int | None, name: str, value: str) -> None:
        if status is not None:
            self.send_response(status)
        self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def there() -> Iterator[AnsweringCollector]:
    found = AnsweringCollector()
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.over.set()
        found.shutdown()
        found.server_close()


@pytest.fixture
def plan():
    """`plan(model="chat")`"""

    def make(
        model: str = "chat",
        *,
        kind: RequestKind = RequestKind.CHAT,
        stream: bool = True,
        n: int = 1,
        user: str | None = None,
        session: str | None = None,
        tags: tuple[tuple[str, str], ...] = (),
    ):
        return SimpleNamespace(
            model=model,
            asked=SimpleNamespace(kind=kind, stream=stream, session=session),
            identity=SimpleNamespace(team_id="search", user_id=user, tags=tags),
            policy=SimpleNamespace(name="interactive"),
            policy_version="abc",
            request=SimpleNamespace(n=n),
            decision=SimpleNamespace(reason=Reason.CHEAPEST, verdicts=(1, 2), first_choice=None),
        )

    return make


@pytest.fixture
def step():
    """`step(own=False, provider="xai")`"""

    def make(*, own: bool = True, name: str = "pool:main/0", provider: str | None = None):
        target = SimpleNamespace(own=own, name=name, provider=provider, upstream_model="m")
        verdict = SimpleNamespace(reason=Reason.CHEAPEST, ttft_ms=120.0)
        return SimpleNamespace(frozen=SimpleNamespace(target=target), verdict=verdict)

    return make


@pytest.fixture
def ending():
    def make(attempt_id: str = "req_1.1", **members) -> AttemptSettled:
        known = {
            "settled_us": 0, "status": "finished", "http_status": 200,
            "tokens": TokenCounts(input=30, cached=10, output=11), "basis": "reported",
            "cost_pusd": 42, "ttft_us": 100_000, "duration_us": 600_000,
        }  # fmt: skip
        return AttemptSettled(attempt_id=attempt_id, **known | members)

    return make
