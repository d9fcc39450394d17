"""Workers are killed under load: no finished answer without its row, none twice, all tokens equal.

What the clients finished, what the engines say they did, and the ledger's rows are joined.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy import warmstart
from gateway.config.settings import TimeoutsSection
from gateway.worker.__main__ import clients_within, server

CLIENTS = 12
SABOTAGE = """
import asyncio
from ledger.journals.journal import JournalWriter

async def late(self, record, written):
    written()
    asyncio.get_running_loop().call_later(0.5, self.append_ending, record)

JournalWriter.append_durable = late
"""


class Client(threading.Thread):
    """Asks without pause and notes every answer that it read to its end."""

    def __init__(self, host, seed: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.host, self.rng, self.halt = host, random.Random(seed), stop
        self.finished: dict[str, int] = {}  # request id: output tokens

    def run(self) -> None:
        while not self.halt.is_set():
            try:
                with closing(self._connection()) as connection:
                    while not self.halt.is_set():
                        self._ask(connection)
            except (OSError, HTTPException):
                time.sleep(0.05)

    def _connection(self) -> HTTPConnection:
        """The standard library's client costs least: processor time is the gateway's to have."""
        return HTTPConnection(self.host.url.removeprefix("http://"), timeout=20)

    def _ask(self, connection: HTTPConnection) -> None:
        stream = self.rng.random() < 0.5
        body = {
            "model": "own", "stream": stream, "max_tokens": self.rng.randrange(1, 40),
            "messages": [{"role": "user", "content": f"number {self.rng.random()}"}],
        }  # fmt: skip
        if stream:
            body["stream_options"] = {"include_usage": True}
        headers = {
            "authorization": f"Bearer {self.host.token}", "content-type": "application/json",
        }  # fmt: skip
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            return
        if not stream:
            usage = json.loads(content)["usage"]
        elif content.endswith(b"data: [DONE]\n\n"):
            usage = json.loads(content.split(b"\n\n")[-3].removeprefix(b"data: "))["usage"]
        else:
            return
        self.finished[answer.headers["x-request-id"]] = usage["completion_tokens"]


def load(host, cycles: int, strike) -> dict[str, int]:
    """Clients at work while `strike` strikes; returns what they finished."""
    stop = threading.Event()
    clients = [Client(host, seed, stop) for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    for cycle in range(cycles):
        before = sum(len(client.finished) for client in clients)
        while sum(len(client.finished) for client in clients) < before + 10 * CLIENTS:
            time.sleep(0.05)
        strike(cycle)
    stop.set()
    for client in clients:
        client.join(30)
    return {name: tokens for client in clients for name, tokens in client.finished.items()}


def lost(host, finished: dict[str, int]) -> list[str]:
    """Finished answers without exactly one finished row of the same tokens."""
    rows: dict[str, list] = {}
    for row in host.rows():
        rows.setdefault(row["request_id"], []).append(row)
    return [
        name
        for name, tokens in finished.items()
        if [(row["status"], row["output_tokens"]) for row in rows.get(name, ())
            if row["status"] == "finished"] != [("finished", tokens)]
    ]  # fmt: skip


def settled(host) -> bool:
    rows = host.rows()
    return bool(rows) and all(row["settled_us"] for row in rows)


def test_killed_workers_lose_no_finished_answer(make_host, patiently) -> None:
    host = make_host()
    host.start()
    rng = random.Random(7)

    def strike(cycle: int) -> None:
        workers = host.pids("gateway.worker")
        os.kill(rng.choice(workers), signal.SIGKILL)
        patiently(lambda: len(host.pids("gateway.worker")) == 2)

    finished = load(host, 3, strike)
    patiently(lambda: settled(host), 40)
    assert len(finished) > 300
    assert lost(host, finished) == []
    rows = host.rows()
    assert max(Counter(row["attempt_id"] for row in rows).values()) == 1
    # Every piece of work that an engine saw is in the books, finished or not.
    known = {row["attempt_id"] for row in rows}
    seen = [entry["request_id"] for entry in host.upstream()]
    assert [name for name in seen if name not in known] == []
    assert host.terminate() == 0


def test_a_killed_host_loses_no_finished_answer(make_host, patiently) -> None:
    """Parent, workers, ledger writer, telemetry and engines at once; then it is started again."""
    host = make_host(workers=1, engines=1)
    host.start()
    finished = load(host, 1, lambda _: host.kill_all())
    host.start()
    finished |= load(host, 1, lambda _: None)
    patiently(lambda: settled(host), 40)
    assert len(finished) > 200
    assert lost(host, finished) == []
    assert host.terminate() == 0


def test_settling_after_the_answer_would_lose_rows(make_host, patiently) -> None:
    """The control: the same kill finds what is not durable before the last byte."""
    host = make_host(workers=1, engines=1)
    host.serve = SABOTAGE + host.serve
    host.start()

    def strike(_cycle: int) -> None:
        for pid in host.pids("gateway.worker"):
            os.kill(pid, signal.SIGKILL)

    finished = load(host, 1, strike)
    patiently(lambda: settled(host), 40)
    assert lost(host, finished)


FILES = """
import os, re, resource as r
from pathlib import Path
from gateway.worker.__main__ import files_allowed, reserve_file_table

_, hard = r.getrlimit(r.RLIMIT_NOFILE)
for allowed in (10_000, 1_000, 200):
    if os.fork() == 0:
        r.setrlimit(r.RLIMIT_NOFILE, (allowed, hard if allowed == 200 else allowed))
        if allowed == 200:
            soft = r.getrlimit(r.RLIMIT_NOFILE)[0]
            print(soft, files_allowed() == min(hard, 2**63) or hard == -1)
        else:
            reserve_file_table(5_000)
            print(re.search(r"FDSize:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
        break
    os.wait()
"""


def test_it_asks_for_all_the_files_that_it_may_open_and_for_room_before_there_are_any() -> None:
    """Many systems begin at 1024, which five hundred streams use up.

    A table that grows would stop every stream; where fewer files are allowed nothing is asked.
    """
    said = warmstart.programs().run([], program=FILES)
    room, none, asked = said.stdout.splitlines()
    assert int(room) >= 5_000
    assert int(none) < 5_000
    assert asked == "200 True", said.stderr


async def test_its_threads_run_before_it_serves() -> None:
    """A thread that is started beside streams keeps all of them waiting until it runs."""

    async def application(scope, receive, _send) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        seen.append(len(asyncio.get_running_loop()._default_executor._threads))
        raise RuntimeError("this is all")

    seen: list[int] = []
    application.origins = ()  # type: ignore[attr-defined]
    application.message_bytes = 1024  # type: ignore[attr-defined]  # a function stands for it
    application.hot = SimpleNamespace(draining=False)  # type: ignore[attr-defined]
    served = server(application, TimeoutsSection())  # type: ignore[arg-type]
    served.should_exit = True
    await served._serve([])
    assert seen == [min(32, os.cpu_count() + 4)]


@pytest.mark.parametrize(("files", "clients"), [(1024, 448), (20_000, 9936), (100, 1)])
def test_each_client_may_need_a_target(files: int, clients: int) -> None:
    assert clients_within(files) == clients


@pytest.mark.parametrize("name", ["--config", "--runtime", "--worker", "--fd"])
def test_every_argument_is_needed(name: str, capsys) -> None:
    from gateway.worker.__main__ import main  # noqa: PLC0415  (its import sets up nothing until it is run)

    given = {"--config": "c", "--runtime": "r", "--worker": "0", "--fd": "3"}
    words = [word for key, value in given.items() if key != name for word in (key, value)]
    with pytest.raises(SystemExit):
        main(words)
    assert name in capsys.readouterr().err


@pytest.mark.parametrize(
    "also",
    [
        "",
        "from gateway.config.conditions import Condition; Condition('team == \"a\"')",
        pytest.param("import cel", marks=pytest.mark.xfail(reason="the control", strict=True)),
    ],
)
def test_a_worker_loads_nothing_big_that_it_does_not_use(also: str) -> None:
    """Each costs every worker 2 to 12 MB: terminals' libraries, other clients, the writer."""
    big = ["cel", "prompt_toolkit", "rich", "typer", "httpx", "litellm", "streamlit", "numpy",
           "alembic", "ledger.writer", "ledger.seals.retire", "joserfc"]  # fmt: skip
    source = f"import sys, gateway.worker\n{also}\nprint([n for n in {big} if n in sys.modules])"
    told = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, check=True, text=True
    )
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["litellm", "openai"])
def test_what_takes_seconds_to_load_is_there_before_the_first_call(make_host, kind) -> None:
    """A library of LiteLLM's own is in the memory of a ready worker that will need it."""
    claude = {"kind": kind, "base_url": "http://127.0.0.1:9/v1", "prices_as": "openai/gpt-4o-mini"}
    standin = {"start": True, "simulated": True, "prices_as": "openai/gpt-4o-mini"}
    server = {"port": 0, "workers": 1, "timeouts": {"drain_s": 1}}
    host = make_host(engines=1, providers={"standin": standin, "anthropic": claude}, server=server)
    host.start()
    (worker,) = host.pids("gateway.worker")
    loaded = "_tiktoken" in Path(f"/proc/{worker}/maps").read_text()
    assert loaded == (kind == "litellm")
