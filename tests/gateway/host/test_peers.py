"""Hosts that exchange slots, as real processes on loopback: seen at once, gone with their host."""

import os
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest
import yaml

from backends.secret import Secret
from deploy import warmstart
from gateway.clock import Clock
from gateway.config.settings import parse
from gateway.errors import ConfigError
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.peers import PeerExchange, main
from gateway.runtime import EngineReplica, Runtime
from gateway.table_layout import LoadCell

SECRET = "a-secret-of-two-hosts-for-tests-01"
AT_ONCE_S = 2.0  # on a machine that does much else; 0.1 s is usual
START_S = 120.0  # of a process there
URL = "http://10.0.0.5:8000/v1"


def seat(name: str, url: str = URL) -> EngineReplica:
    return EngineReplica(
        name=name, pool="a", base_url=url, managed=False, simulated=True, served_name="llama",
        max_num_seqs=8, prefill_budget_tokens=512,
    )  # fmt: skip


class Side:
    """One host's exchange, with a board whose only worker is the test."""

    def __init__(self, folder: Path, seats: tuple[EngineReplica, ...], **peers: object) -> None:
        (folder / "run").mkdir(parents=True)
        self.config = folder / "breakeven.yaml"
        said = {"state_dir": str(folder), "peers": {**peers, "secret_env": "SHARED"}}
        self.config.write_text(yaml.safe_dump(said))
        self.runtime = Runtime(
            workers=1, state_dir=str(folder), ledger_url="sqlite://", policy_version="v",
            engines=seats, apis=(), providers={}, host=folder.name, peers=True,
        )  # fmt: skip
        self.path = self.runtime.save()
        self.board = SharedLoadTable(self.runtime.run_dir / "board", self.runtime.layout)
        self.process: warmstart.WarmProgram | None = None

    def start(self, secret: str = SECRET) -> None:
        self.process = warmstart.programs().start(
            ["--config", self.config, "--runtime", self.path],
            environ={**os.environ, "SHARED": secret},
            program=warmstart.MODULE.format("gateway.host.peers"),
        )

    def put(self, row: int, cell: LoadCell, value: float) -> None:
        self.board.cells[self.board.load_row(0, row) + cell] = value

    @property
    def heard(self) -> int:
        return PeerLoadRow(self.board).hosts

    @property
    def lives(self) -> bool:
        return 0.0 < self.board.cells[self.board.peers] > time.monotonic() - 1.0

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.board.close()


@pytest.fixture
def pair(tmp_path, free_port):
    """Two hosts with one engine in common, in different rows of their boards."""
    at = [f"127.0.0.1:{free_port}", f"127.0.0.2:{free_port}"]
    other = seat("pool:a/1", "http://10.0.0.6:8000/v1")
    first = Side(tmp_path / "one", (seat("pool:a/0"), other), listen=at[0], hosts=at[::-1])
    third = seat("pool:b/0", "http://10.0.0.7:8000/v1")
    second = Side(tmp_path / "two", (third, seat("pool:b/1")), listen=at[1], hosts=at)
    yield first, second
    for side in (first, second):
        side.close()


def within(check, limit_s: float = AT_ONCE_S) -> float:
    """Seconds until it came true."""
    began_s = time.monotonic()
    while not check():
        assert time.monotonic() - began_s < limit_s, "never came true"
        time.sleep(0.002)
    return time.monotonic() - began_s


def test_a_promise_is_seen_by_the_other_host_at_once_and_gone_with_its_host(
    pair, patiently
) -> None:
    item, two = pair
    item.start()
    two.start()
    patiently(lambda: item.heard == two.heard == 1, START_S)
    took_s = []
    for count in range(1, 11):
        item.put(0, LoadCell.PROMISED_TOKENS, 512.0 * count)
        took_s.append(
            within(
                lambda count=count: two.board.loads(1)[LoadCell.PROMISED_TOKENS] == 512.0 * count
            )
        )
    print(f"seen after {sorted(took_s)[5]:.3f} s (median of ten), {max(took_s):.3f} s at most")
    item.put(0, LoadCell.JUDGED_TOTAL, 9.0)
    item.put(0, LoadCell.HEARD_S, 9.0)
    item.put(0, LoadCell.SEQUENCES, 3.0)
    item.put(1, LoadCell.SEQUENCES, 5.0)  # of an engine that the other does not have
    two.put(1, LoadCell.SEQUENCES, 2.0)
    within(lambda: two.board.loads(1)[LoadCell.SEQUENCES] == 5.0)
    within(lambda: item.board.loads(0)[LoadCell.SEQUENCES] == 5.0)  # and no echo of its own
    assert two.board.loads(0) == [0.0] * len(LoadCell)
    assert two.board.loads(1)[LoadCell.JUDGED_TOTAL] == two.board.loads(1)[LoadCell.HEARD_S] == 0.0

    item.process.kill()
    within(lambda: two.board.loads(1)[LoadCell.SEQUENCES] == 2.0)
    assert two.heard == 0


def test_a_host_that_hangs_is_dropped_and_comes_back(pair, patiently) -> None:
    item, two = pair
    item.start()
    two.start()
    patiently(lambda: item.heard == two.heard == 1, START_S)
    item.put(0, LoadCell.SEQUENCES, 3.0)
    within(lambda: two.board.loads(1)[LoadCell.SEQUENCES] == 3.0)
    item.process.send_signal(signal.SIGSTOP)
    took_s = within(lambda: two.board.loads(1)[LoadCell.SEQUENCES] == 0.0)
    assert took_s > 0.2  # it was no end of the connection that told
    item.process.send_signal(signal.SIGCONT)
    patiently(lambda: two.board.loads(1)[LoadCell.SEQUENCES] == 3.0)
    two.process.terminate()
    two.process.wait(10)
    assert two.board.loads(1)[LoadCell.SEQUENCES] == 0.0  # what it heard ends with it


def test_without_the_secret_nothing_arrives(pair, patiently) -> None:
    item, two = pair
    item.start("b" + SECRET[1:])
    two.start()
    patiently(lambda: item.lives and two.lives, START_S)
    item.put(0, LoadCell.SEQUENCES, 3.0)
    two.put(1, LoadCell.SEQUENCES, 2.0)
    deadline = time.monotonic() + AT_ONCE_S
    while time.monotonic() < deadline:
        assert (item.heard, two.heard) == (0, 0)
        assert item.board.loads(0)[LoadCell.SEQUENCES] == 3.0
        assert two.board.loads(1)[LoadCell.SEQUENCES] == 2.0
        time.sleep(0.05)


def test_two_pools_of_one_engine_are_told_together(tmp_path) -> None:
    seats = (seat("pool:a/0"), seat("pool:b/0"))
    side = Side(tmp_path / "one", seats, listen="127.0.0.1:1", hosts=["127.0.0.1:2"])
    settings = parse(side.config.read_text(), name="t").peers
    exchange = PeerExchange(settings, seats, side.board, Secret(SECRET), Clock())
    for row, sequences in enumerate((2.0, 3.0)):
        side.put(row, LoadCell.SEQUENCES, sequences)
    loads = [side.board.own_loads(row) for row in range(2)]
    assert [share.sequences for share in exchange._own(loads, 1.0).values()] == [5.0]
    side.close()


def test_a_secret_that_is_missing_or_short_is_named(pair, monkeypatch) -> None:
    words = ["--config", str(pair[0].config), "--runtime", str(pair[0].path)]
    monkeypatch.setattr("gateway.logs.start", lambda *_: None)
    for value, told in (("", "is not set"), ("short", "is shorter than 32")):
        monkeypatch.setenv("SHARED", value)
        with pytest.raises(ConfigError, match=rf"peers\.secret_env: `SHARED` {told}"):
            main(words)


def running(host) -> float:
    return host.metric("breakeven_engine_running")


def test_serving_hosts_decide_by_what_others_have_in_flight(
    make_host, free_port, patiently
) -> None:
    """One runs an engine that all use. The third exchanges nothing and sees what a scrape shows."""
    at = [f"127.0.0.2:{free_port}", f"127.0.0.3:{free_port}"]
    engine = {"kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "served_name": "llama"}
    gpu = {"type": "H200", "usd_per_hour": "3.50"}
    elsewhere = {**engine, "endpoints": [f"http://127.0.0.1:{free_port}/v1"]}
    common = {
        "server": {"port": 0, "workers": 1, "timeouts": {"drain_s": 1}},
        "telemetry": {"scrape_s": 5, "stale_s": 60},  # the next sight of it is far away
        "providers": {}, "dashboard": {"enabled": False},
        "models": {"own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]}},
    }  # fmt: skip
    made = [
        make_host(
            **common, pools={"main": {"engine": has, "gpu": gpu}},
            **({} if listen is None else
               {"peers": {"listen": listen, "hosts": at, "secret_env": "SHARED"}}),
        )
        for has, listen in (
            ({**engine, "replicas": 1, "port": free_port}, at[0]),
            (elsewhere, at[1]),
            (elsewhere, None),
        )
    ]  # fmt: skip
    for host in made:
        host.environ["SHARED"] = SECRET
        host.start()
    owner, other, alone = made
    patiently(lambda: [host.metric("breakeven_peers_heard") for host in made] == [1, 1, 0])
    assert (running(other), running(alone)) == (0.0, 0.0)

    begun = threading.Event()

    def stream() -> None:
        body = {"model": "own", "stream": True, "max_tokens": 60_000, "ignore_eos": True,
                "messages": [{"role": "user", "content": "go on"}]}  # fmt: skip
        headers = {"authorization": f"Bearer {owner.token}"}
        url = f"{owner.url}/v1/chat/completions"
        try:
            with httpx.stream("POST", url, json=body, headers=headers, trust_env=False) as answer:
                for _ in answer.iter_raw():
                    begun.set()
        except httpx.HTTPError:
            return  # its host is killed below

    reader = threading.Thread(target=stream, daemon=True)
    reader.start()
    assert begun.wait(20)
    within(lambda: running(other) == 1.0)
    assert running(alone) == 0.0
    owner.kill_all()
    within(lambda: other.metric("breakeven_peers_heard") == 0.0)
    reader.join(10)
