"""`breakeven serve` as real processes: start, drain, restart, and nothing left behind."""

import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

import httpx
import pytest

from deploy import warmstart
from gateway.config.settings import parse
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host import serve
from gateway.runtime import Runtime
from ledger.database import open_readonly

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


async def test_no_engine_is_started_while_streams_finish(tmp_path) -> None:
    """First of all, not when it is the engines' turn to end."""
    order: list[str] = []

    class Engines:
        def start_no_more(self) -> None:
            order.append("no more")

        async def stop(self) -> None:
            order.append("engines")

    class Worker:
        async def stop(self, _grace_s: float) -> None:
            order.append("streams")

    serving = serve.HostServer(parse("{}", name="t"), tmp_path / "t.yaml", order.append)
    serving._engines, serving._front = Engines(), [Worker()]
    await serving.stop()
    assert order == ["no more", "streams", "engines"]


def test_metrics_are_the_sum_of_workers_and_sigterm_lets_open_streams_finish(
    make_host, patiently
) -> None:
    """One host for both, because its start takes longer than they do."""
    host = make_host(engines=1, server={"port": 0, "workers": 2, "timeouts": {"drain_s": 5}})
    host.start()
    sum_of_workers(host, patiently)
    ended_by_sigterm(host)


def sum_of_workers(host, patiently) -> None:
    """Metrics outlive a worker, and names that clients invent make no series."""
    with httpx.Client(trust_env=False) as client:
        for number in range(40):
            body = {"model": "own", "max_tokens": 2, "messages": [{"role": "user", "content": "x"}]}
            headers = {"authorization": f"Bearer {host.token}", "connection": "close"}
            url = f"{host.url}/v1/chat/completions"
            assert client.post(url, json=body, headers=headers).status_code == 200, number
    served = 40 + host.answered
    patiently(lambda: host.metric("breakeven_requests_total") == served)
    assert {host.metric("breakeven_requests_total") for _ in range(8)} == {served}
    tokens = sum(row["output_tokens"] for row in patiently(lambda: _settled(host, 41)))
    worker = host.pids("gateway.worker")[0]
    open_stream = Reader(host, **{**STREAM, "max_tokens": 60_000})
    assert open_stream.begun.wait(20)
    for pid in host.pids("gateway.worker"):
        os.kill(pid, signal.SIGKILL)  # also the one that holds the stream
    patiently(lambda: len(set(host.pids("gateway.worker")) - {worker}) == 2)
    patiently(lambda: _answers(host))
    open_stream.join(20)
    patiently(lambda: host.metric("breakeven_in_flight") == 0)
    again = host.metric("breakeven_requests_total")
    assert again >= served
    assert host.metric("breakeven_tokens_total") >= tokens
    patiently(lambda: host.metric("breakeven_ledger_lag_seconds") > 0)
    assert host.metric("breakeven_engine_healthy") > 0
    # 2,000 invented names: 404s, and pass-through names that really are served.
    before = len(host.get("/metrics").text.splitlines())
    names = [f"standin/made-up-{i}" for i in range(32)] + [f"made-up-{i}" for i in range(1968)]
    with ThreadPoolExecutor(16) as crowd:
        statuses = list(crowd.map(lambda part: asked(host, names[part::16]), range(16)))
    assert Counter(itertools.chain(*statuses)) == {200: 32, 404: 1968}
    text = host.get("/metrics").text
    assert "made-up" not in text
    assert 'model="other"' in text
    first_use = 80  # series that appear with the first pass-through request
    assert len(text.splitlines()) - before <= first_use


def ended_by_sigterm(host) -> None:
    """What does not finish within the grace is told so, and billed for what it had."""
    readers = [Reader(host, **{**STREAM, "max_tokens": 150}) for _ in range(4)]
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
        assert (row["status"], row["basis"], row["output_tokens"]) == ("finished", "reported", 150)
    last = json.loads(endless.read.strip().rpartition(b"data: ")[2])
    assert last["error"]["code"] == "unavailable"
    row = rows[endless.request_id]
    assert (row["status"], row["basis"]) == ("timeout", "continuous")
    assert row["output_tokens"] > 150


def asked(host, models: list[str]) -> list[int]:
    """The statuses of one short question to each, over one connection."""
    headers = {"authorization": f"Bearer {host.token}", "content-type": "application/json"}
    found = []
    with closing(HTTPConnection(host.url.removeprefix("http://"), timeout=60)) as connection:
        for model in models:
            body = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            found.append(answer.status)
    return found


def _settled(host, count: int) -> list:
    rows = host.rows("settled_us IS NOT NULL")
    return rows if len(rows) >= count else []


def _answers(host) -> bool:
    try:
        return host.ask().status_code == 200
    except httpx.HTTPError:
        return False


def test_parts_and_parent_are_killed_and_who_asks_twice_to_stop_does_not_wait(
    make_host, patiently, free_port
) -> None:
    """One host for all that may happen to it, because its start takes longer than they do."""
    server = {"port": free_port, "workers": 1, "timeouts": {"drain_s": 4}}
    host = make_host(engines=1, server=server)
    host.start()
    second_refused(host)
    parts_come_back(host, patiently)
    parent_followed(host, patiently)
    ended_by_who_asks_twice(host)


def second_refused(host) -> None:
    """On one state directory there is one parent."""
    answer = warmstart.programs().run(["serve", "--config", host.config])
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == (
        f"breakeven: state_dir: {host.state} is in use by another `breakeven` "
        f"(process {host.process.pid}): stop it first"
    )
    assert host.ask().status_code == 200  # the first noticed nothing of it


def parts_come_back(host, patiently) -> None:
    for module in ("ledger.writer", "gateway.host.telemetry", "backends.simulator.server"):
        pids = host.pids(module)
        assert pids, module
        os.kill(pids[0], signal.SIGKILL)
        patiently(lambda pids=pids, module=module: len(set(host.pids(module)) - {pids[0]})
                  == len(pids))  # fmt: skip
    patiently(lambda: _answers(host))


def parent_followed(host, patiently) -> None:
    """At once, on the same port, which its workers still have: they finish their streams.

    Of the killed one's processes nothing is left. Its successor has a minute for its streams.
    """
    reader = Reader(host, **{**STREAM, "max_tokens": 60_000})
    assert reader.begun.wait(20)
    before = set(host.pids())
    host.process.kill()
    host.process.wait()
    host._end()
    host.config.write_text(host.config.read_text().replace("drain_s: 4", "drain_s: 60"))
    host.start()
    reader.join(20)
    assert host.ask().status_code == 200
    patiently(lambda: not before & set(host.pids()))


def ended_by_who_asks_twice(host) -> None:
    """Streams are told, and billed for what they had; without the second signal: a minute."""
    endless = Reader(host, **{**STREAM, "max_tokens": 60_000, "logprobs": False})
    assert endless.begun.wait(20)
    began_s = time.monotonic()
    host.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        host.process.wait(3)
    host.process.send_signal(signal.SIGINT)
    assert host.process.wait(40) == 0
    assert time.monotonic() - began_s < 45
    endless.join(20)
    assert host.pids() == []
    last = json.loads(endless.read.strip().rpartition(b"data: ")[2])
    assert last["error"]["code"] == "unavailable"
    (row,) = [row for row in host.rows() if row["request_id"] == endless.request_id]
    assert (row["status"], row["basis"]) == ("timeout", "continuous")


def test_a_dashboards_port_that_is_taken_is_one_line_with_its_fix(make_host) -> None:
    """Streamlit found it taken, ended, and was started again for ever; nobody was told."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        host = make_host(dashboard={"enabled": True, "port": port})
        answer = warmstart.programs().run(["serve", "--config", host.config])
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    (line,) = answer.stderr.splitlines()
    assert f"dashboard.port: cannot listen on 127.0.0.1:{port}: it is taken by process" in line
    assert line.endswith(": end it, or set another port (`make run DASHBOARD_PORT=9001`)")


def test_in_containers_all_processes_log_on_one_output_and_each_request_has_a_line(
    make_host,
) -> None:
    """Files on a volume are read by nobody who collects the logs of containers."""
    logs = {"to": "stdout", "access": True}
    host = make_host(engines=1, logs=logs, server={"port": 0, "workers": 1})
    host.within = ["bash", "-c", f'exec "$@" > >(tee {host.state}/output)', "bash"]
    host.start()
    answer = host.ask(messages=[{"role": "user", "content": "the prompt"}])
    stream = host.ask(stream=True, max_tokens=3)
    assert host.terminate() == 0
    text = (host.state / "output").read_text()
    assert " telemetry breakeven.telemetry " in text
    assert not list((host.state / "logs").glob("worker-*"))
    for asked in (answer, stream):
        (line,) = (
            each_line
            for each_line in text.splitlines()
            if asked.headers["x-request-id"] in each_line
        )
        assert " info worker-0 breakeven.access " in line
        assert " method=POST path=/v1/chat/completions status=200 duration_ms=" in line
        assert f" target={asked.headers['x-breakeven-backend']}" in line
        assert f" bytes={len(asked.content)} " in line
    assert "the prompt" not in text
    assert host.token not in text


LOADS_FOR_EVER = """#!/bin/sh
case "$*" in *--help=all*)
  for flag in model port max-num-seqs max-num-batched-tokens; do echo "  --$flag X"; done; exit 0;;
esac
exec sleep 600
"""


def test_no_request_reaches_a_stranger_on_a_managed_port(make_host, stranger_on, tmp_path) -> None:
    """Ours runs and loads for ever; another engine answers on its port all the while."""
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(LOADS_FOR_EVER)
    python.chmod(0o700)
    engine = {
        "kind": "vllm", "model": str(tmp_path), "served_name": "llama", "replicas": 1, "port": 0,
        "environment": str(tmp_path / "environment"), "context_tokens": 4096,
    }  # fmt: skip
    sim = {"kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "replicas": 1, "port": 0}
    host = make_host(
        workers=1,
        pools={
            "main": {"engine": {**sim, "served_name": "llama"}, "gpu": {"type": "H200"}},
            "late": {"engine": engine, "gpu": {"type": "H200"}},
        },
        models={
            "own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
            "late": {
                "targets": ["pool:late", "standin/m"],
                "compare_with": ["openai/gpt-4o-mini"],
            },
            "standin/*": "passthrough",
        },
    )
    (tmp_path / "config.json").write_text("{}")
    host.start()
    runtime = Runtime.load(host.state / "run" / "runtime.json")
    row, seat = next((row, seat) for row, seat in enumerate(runtime.engines) if seat.pool == "late")
    stranger = stranger_on(int(seat.base_url.removesuffix("/v1").rpartition(":")[2]), "llama")
    answers = []
    ended = time.monotonic() + 12  # a sample is written every ten seconds
    while time.monotonic() < ended:
        answers.append(host.ask("late"))
        time.sleep(0.2)
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-breakeven-backend"] for answer in answers} == {"standin/m"}
    assert stranger.asked == []
    board = SharedLoadTable(host.state / "run" / "board", runtime.layout)
    # Its port is found taken while it loads: it is ended, and waits for the port.
    assert (board.life(row), board.stage(row)) == (0, "blocked")
    board.close()
    ledger = open_readonly(runtime.ledger_url)
    with ledger.connect() as connection:
        query = "SELECT DISTINCT health FROM engine_samples WHERE pool = 'late'"
        assert set(connection.exec_driver_sql(query).scalars()) <= {"loading", "down"}
    ledger.dispose()
    assert host.terminate() == 0


def test_a_log_is_named_by_where_it_is(tmp_path) -> None:
    """`see logs/worker-0.log` was below no folder that the reader stood in."""
    said: list[str] = []
    settings = parse("{state_dir: /var/lib/breakeven}", name="t")
    serve.HostServer(settings, tmp_path / "t.yaml", said.append)._on_exit("worker-0", 1)
    assert said[0].endswith("(see /var/lib/breakeven/logs/worker-0.log)")
