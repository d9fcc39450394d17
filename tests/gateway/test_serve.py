"""`breakeven serve` as real processes: start, drain, restart, and nothing left behind."""

import json
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from gateway.errors import ConfigError
from gateway.serve import listen
from gateway.settings import parse

STREAM = {"stream": True, "max_tokens": 600, "ignore_eos": True, "logprobs": True}


class Reader(threading.Thread):
    """Reads one stream to its end, however that comes."""

    def __init__(self, host, **members) -> None:
        super().__init__(daemon=True)
        self.host, self.members, self.read = host, members, b""
        self.begun = threading.Event()
        self.start()

    def run(self) -> None:
        body = {"model": "own", "messages": [{"role": "user", "content": "go on"}], **self.members}
        headers = {"authorization": f"Bearer {self.host.token}"}
        url = f"{self.host.url}/v1/chat/completions"
        with httpx.stream(
            "POST", url, json=body, headers=headers, trust_env=False, timeout=30
        ) as answer:
            self.request_id = answer.headers["x-request-id"]
            try:
                for part in answer.iter_raw():
                    self.read += part
                    self.begun.set()
            except httpx.HTTPError:
                return


def test_sigterm_lets_open_streams_finish_and_leaves_nothing(make_host) -> None:
    """What does not finish within the grace is told so, and billed for what it had."""
    host = make_host()
    host.start()
    readers = [Reader(host, **{**STREAM, "max_tokens": 300}) for _ in range(4)]
    endless = Reader(host, **{**STREAM, "max_tokens": 60_000, "logprobs": False})
    assert all(reader.begun.wait(20) for reader in (*readers, endless))
    assert host.terminate() == 0
    for reader in (*readers, endless):
        reader.join(20)
    assert host.pids() == []
    rows = {row["request_id"]: row for row in host.rows()}  # the writer applied all before it left
    for reader in readers:
        assert reader.read.endswith(b"data: [DONE]\n\n")
        row = rows[reader.request_id]
        assert (row["status"], row["basis"], row["output_tokens"]) == ("finished", "reported", 300)
    last = json.loads(endless.read.strip().rpartition(b"data: ")[2])
    assert last["error"]["code"] == "unavailable"
    row = rows[endless.request_id]
    assert (row["status"], row["basis"]) == ("timeout", "continuous")
    assert row["output_tokens"] > 300


def test_metrics_are_the_sum_of_workers_and_outlive_one(make_host, patiently) -> None:
    host = make_host()
    host.start()
    served = len(patiently(host.rows))
    with httpx.Client(trust_env=False) as client:
        for number in range(40):
            body = {"model": "own", "max_tokens": 2, "messages": [{"role": "user", "content": "x"}]}
            headers = {"authorization": f"Bearer {host.token}", "connection": "close"}
            url = f"{host.url}/v1/chat/completions"
            assert client.post(url, json=body, headers=headers).status_code == 200, number
    served += 40
    assert {host.metric("breakeven_requests_total") for _ in range(8)} == {served}
    tokens = sum(row["output_tokens"] for row in patiently(lambda: _all(host, served)))
    worker = host.pids("gateway.worker")[0]
    open_stream = Reader(host, **{**STREAM, "max_tokens": 60_000})
    assert open_stream.begun.wait(20)
    for pid in host.pids("gateway.worker"):
        os.kill(pid, signal.SIGKILL)  # also the one that holds the stream
    patiently(lambda: len(set(host.pids("gateway.worker")) - {worker}) == 2)
    patiently(lambda: _answers(host))
    open_stream.join(20)
    assert host.metric("breakeven_in_flight") == 0
    again = host.metric("breakeven_requests_total")
    assert again >= served
    assert host.metric("breakeven_tokens_total") >= tokens
    # 2,000 invented names: 404s, and pass-through names that really are served.
    before = len(host.get("/metrics").text.splitlines())
    names = [f"standin/made-up-{i}" for i in range(32)] + [f"made-up-{i}" for i in range(1968)]
    with (
        httpx.Client(trust_env=False, headers=headers_of(host)) as client,
        ThreadPoolExecutor(16) as crowd,
    ):

        def ask(model: str) -> int:
            body = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
            return client.post(f"{host.url}/v1/chat/completions", json=body).status_code

        assert list(crowd.map(ask, names)) == [200] * 32 + [404] * 1968
    text = host.get("/metrics").text
    assert "made-up" not in text
    assert 'model="other"' in text
    first_use = 80  # series that appear with the first pass-through request
    assert len(text.splitlines()) - before <= first_use
    assert host.terminate() == 0


def headers_of(host) -> dict[str, str]:
    return {"authorization": f"Bearer {host.token}"}


def _all(host, count: int) -> list:
    rows = host.rows("settled_us IS NOT NULL")
    return rows if len(rows) >= count else []


def _answers(host) -> bool:
    try:
        return host.ask().status_code == 200
    except httpx.HTTPError:
        return False


def test_every_process_comes_back_and_a_killed_parent_leaves_nothing(make_host, patiently) -> None:
    host = make_host()
    host.start()
    for module in ("ledger.writer", "gateway.telemetry", "backends.simulator.server"):
        pids = host.pids(module)
        assert pids, module
        os.kill(pids[0], signal.SIGKILL)
        patiently(lambda pids=pids, module=module: len(set(host.pids(module)) - {pids[0]})
                  == len(pids))  # fmt: skip
    patiently(lambda: _answers(host))
    host.process.kill()
    host.process.wait()
    patiently(lambda: not host.pids())
    host.kill_all()  # nothing is left to kill


def test_a_taken_port_is_one_line(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = f"state_dir: {tmp_path}\nserver: {{port: {port}}}\n"
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
            listen(parse(text, name="test"))
