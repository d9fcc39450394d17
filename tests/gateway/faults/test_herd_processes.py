"""An engine is killed, many line up at a running `serve` meanwhile, and it comes back.

As `test_recovery_herd.py`, but with everything in processes of its own: two workers, and an engine
that ends by SIGKILL and is started again. The proxy before it counts what arrives there and when.
Never more are at the engine than its places and who may wait for one within the promise, nobody is
sent twice, and the pace of before is reached again. The control promises nothing.
"""

import threading
import time
from typing import Any

import pytest

from deploy import warmstart
from gateway.fleet.shared_load import SharedLoadTable
from gateway.runtime import Runtime
from gateway.table_layout import HEALTHS, EngineCell, LoadCell

ENGINE = "h200-llama-3.1-8b-fp8"
PLACES, SPEED, TOKENS = 8, 0.5, 40
WORKERS = 2
# Three may wait within the promise as a newly met engine is believed to run, at its profile's
# speed; and workers may look at the same moment, more than once where the machine is busy.
LATE = PLACES
BURST_S = 0.1
SIZES = {"small": (60, 2.0), "full": (500, 60.0)}  # clients, seconds that it is away
QUEUED = {"name": "queued", "otherwise": "queue", "queue_ms": 300_000}
LIMITED = {**QUEUED, "slo": {"ttft_ms": 150}}
SIMULATOR = warmstart.MODULE.format("backends.simulator.server")


class Upstream:
    """The engine as a process on one port, as often as it is started."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._process: warmstart.WarmProgram | None = None

    def start(self) -> None:
        words = ["--profile", ENGINE, "--model", "llama", "--port", str(self._port)]
        words += ["--max-num-seqs", str(PLACES), "--speed", str(SPEED)]
        self._process = warmstart.programs().start(words, program=SIMULATOR)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class SlotWatch:
    """The most that were at the engine at once, by all workers' slots."""

    def __init__(self, host: Any) -> None:
        runtime = Runtime.load(host.state / "run" / "runtime.json")
        self.board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
        self.most, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def health(self) -> str:
        return HEALTHS[int(self.board.published(0)[EngineCell.HEALTH])]

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self.board.close()

    def _look(self) -> None:
        while not self._over.wait(0.002):
            self.most = max(self.most, self.board.loads(0)[LoadCell.SEQUENCES])


@pytest.fixture
def herd(make_host, make_proxy, free_port, request):
    """(host, proxy, engine, watching) under a policy."""
    made: list[Any] = []

    def make(policy: dict[str, Any]):
        upstream, proxy = Upstream(free_port), make_proxy(free_port)
        made.append(upstream)
        upstream.start()
        engine = {
            "kind": "simulated", "model": ENGINE, "served_name": "llama", "max_num_seqs": PLACES,
            "endpoints": [f"http://127.0.0.1:{proxy.port}/v1"],
        }  # fmt: skip
        gpu = {"type": "H200", "usd_per_hour": "3.50"}
        host = make_host(
            server={"port": 0, "workers": WORKERS, "timeouts": {"drain_s": 8}},
            policies=[policy],
            pools={"main": {"engine": engine, "gpu": gpu}},
        )
        host.start()
        watching = SlotWatch(host)
        made.append(watching)
        return host, proxy, upstream, watching

    yield make
    for made_value in reversed(made):
        made_value.kill() if isinstance(made_value, Upstream) else made_value.close()


def answered(asked: list[Any]) -> list[float]:
    """When each was, on the monotonic clock."""
    return sorted(request.at_s + request.took_s for request in asked)


def pace(moments: list[float]) -> float:
    """Answers a second between the first and the last."""
    return (len(moments) - 1) / (moments[-1] - moments[0])


class Rush:
    """A crowd before a healthy engine, then one before an engine that is away."""

    def __init__(self, parts, crowd, patiently, size: str) -> None:
        self._host, self._proxy, self._upstream, self._watching = parts
        self._crowd, self._patiently = crowd, patiently
        self.clients, self._away_s = SIZES[size]

    def _all(self, count: int, between) -> list[Any]:
        port = int(self._host.url.rpartition(":")[2])
        asked = self._crowd.ask(
            port, 400.0, count / 400.0, self._host.token,
            model="own", max_tokens=TOKENS, ignore_eos=True,
        )  # fmt: skip
        self._patiently(lambda: len(asked) == count, 60)
        between()
        self._patiently(lambda: all(request.took_s for request in asked), 240)
        return asked

    def before(self) -> float:
        """The pace while nothing is wrong."""
        asked = self._all(max(60, self.clients // 4), lambda: None)
        assert {request.status for request in asked} == {200}
        return pace(answered(asked))

    def after(self) -> tuple[list[Any], float, list[float]]:
        """(who asked, when it was back, when each arrived at the engine)."""
        self._upstream.kill()
        self._patiently(lambda: self._watching.health() == "down")
        self._proxy.seen.clear()
        self._watching.most, back = 0.0, 0.0

        def outage() -> None:
            nonlocal back
            time.sleep(self._away_s)
            assert self._watching.most == 0.0, "nobody is sent to an engine that is away"
            self._upstream.start()
            self._patiently(lambda: self._watching.health() == "healthy", 60)
            back = time.monotonic()

        asked = self._all(self.clients, outage)
        return asked, back, sorted(event.at_s for event in self._proxy.seen)

    @property
    def most(self) -> float:
        return self._watching.most


def burst(arrivals: list[float]) -> int:
    """The most that arrive within `BURST_S`."""
    return max(sum(0 <= at - first < BURST_S for at in arrivals) for first in arrivals)


def recovered_s(moments: list[float], back_s: float, before: float) -> float:
    """From when it is back until two seconds have nine tenths of the pace of before."""
    for at in moments:
        if sum(at - 2.0 < moment <= at for moment in moments) >= 0.9 * 2.0 * before:
            return at - back_s
    return float("inf")


@pytest.mark.parametrize("size", ["small", pytest.param("full", marks=pytest.mark.long)])
def test_who_waited_is_let_in_as_there_is_room(herd, crowd, patiently, size) -> None:
    rush = Rush(herd(LIMITED), crowd, patiently, size)
    before = rush.before()
    asked, back_s, arrivals = rush.after()
    moments = answered(asked)
    print(
        f"\n{rush.clients} waited: at once at most {rush.most:.0f} of {PLACES}, within {BURST_S} s"
        f" {burst(arrivals)}; {len(arrivals)} sent; {pace(moments):.1f} answers/s where it was"
        f" {before:.1f}, nine tenths of it {recovered_s(moments, back_s, before):.1f} s after the"
        f" return, all after {moments[-1] - back_s:.1f} s"
    )
    assert {request.status for request in asked} == {200}
    assert all(request.whole for request in asked)
    assert len(arrivals) == rush.clients, "nobody is sent twice"
    assert rush.most <= PLACES + LATE
    assert burst(arrivals) <= PLACES + LATE
    if size == "full":
        assert recovered_s(moments, back_s, before) <= 10.0


def test_without_a_promise_all_are_sent_at_once(herd, crowd, patiently) -> None:
    """The negative control."""
    rush = Rush(herd(QUEUED), crowd, patiently, "small")
    rush.before()
    asked, _, arrivals = rush.after()
    print(f"\nwithout a promise: {rush.most:.0f} at once, within {BURST_S} s {burst(arrivals)}")
    assert {request.status for request in asked} == {200}
    assert rush.most > 4 * PLACES
