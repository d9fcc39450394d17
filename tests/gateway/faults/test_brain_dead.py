"""The brain of a running `serve` fails: requests follow the configured order, and an alarm says so.

Three ways: deciding raises; the shared memory says what no engine can say; telemetry hangs while
many ask. What it costs is printed: each answer's time with the fault beside one without it. The
controls take the protection away: then a defect in deciding costs answers, and what is stale is
filled as if it were fresh.
"""

import contextlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from math import inf, nan
from typing import Any, Self

import pytest

from gateway.fleet.shared_load import SharedLoadTable
from gateway.runtime import Runtime
from gateway.table_layout import EngineCell, LoadCell
from router.static_order import SHARE

PAIRS, TRIES = 20, 4
PLACES, CROWD = 8, 40
RACE = 1  # two workers may look at the same moment
STALE_S = 2.0

# In the workers, for as long as a file is there, `router.decide` fails.
RAISES = """
from pathlib import Path
from gateway.request.degraded_decider import DegradedDecider
begin, failing = DegradedDecider.__init__, Path({mark!r})
def begin_failing(self, *given):
    begin(self, *given)
    usual = self._decide
    def decide(*given):
        if failing.exists():
            raise ZeroDivisionError("a defect")
        return usual(*given)
    self._decide = decide
DegradedDecider.__init__ = begin_failing
"""
UNSAFE = """
DegradedDecider.decide = lambda self, *given: (self._decide(*given[:3]), False)
"""
TRUSTS = """
from router import static_order
static_order.SHARE = 1e9
"""

NONSENSE: list[dict[EngineCell, float]] = [
    {EngineCell.HEALTH: 99.0},
    {EngineCell.UPDATED_S: nan},
    {EngineCell.UPDATED_S: 1e300},
    {EngineCell.KV_CAPACITY_TOKENS: nan},
    {EngineCell.FOREIGN_SEQUENCES: inf},
    {EngineCell.B_S: -1.0},
    {EngineCell.CONTEXT_TOKENS: inf},
    {EngineCell.T0_S: -inf},
]


@pytest.fixture
def sabotaged(make_host):
    """`sabotaged(code, **changes)`: a started host that runs the code before it forks others."""

    def make(code: str, **changes: Any):
        host = make_host(**{"telemetry": {"scrape_s": 0.1, "stale_s": STALE_S}, **changes})
        host.serve = code + host.serve
        host.start()
        return host

    return make


def reason(answer) -> str:
    """Of `own:cheapest ttft=24ms`."""
    return answer.headers.get("x-breakeven-decision", "").partition(" ")[0].partition(":")[2]


def test_a_defect_in_deciding_costs_no_answer(sabotaged, patiently, tmp_path) -> None:
    mark = tmp_path / "failing"
    host = sabotaged(RAISES.format(mark=str(mark)))
    took: dict[str, list[float]] = {"usual": [], "static": []}
    for _ in range(PAIRS):
        for word, times in took.items():
            mark.touch() if word == "static" else mark.unlink(missing_ok=True)
            begun_s = time.perf_counter()
            answer = host.ask()
            times.append(1e3 * (time.perf_counter() - begun_s))
            assert answer.status_code == 200
            assert (reason(answer) == "static") == (word == "static")
    added = [item - other for item, other in zip(took["static"], took["usual"], strict=True)]
    middles = {word: statistics.median(times) for word, times in took.items()}
    print(
        f"\nan answer of five tokens in {middles['usual']:.0f} ms, {middles['static']:.0f} while"
        f" deciding fails: {statistics.median(added):+.1f} ms (median of {PAIRS} pairs, the most"
        f" {max(added):+.0f})"
    )
    mark.unlink()
    patiently(lambda: host.metric("breakeven_static_decisions_total") >= PAIRS)
    alarms = [line for line in logged(host) if "requests follow the configured order" in line]
    assert alarms
    assert "deciding failed: ZeroDivisionError: a defect" in alarms[0]
    assert len(alarms) <= host.workers  # not one for each request
    patiently(lambda: len(host.rows("settled_us IS NOT NULL")) >= host.answered)
    assert reason(host.ask()) in ("cheapest", "only")


def test_without_the_static_order_a_defect_costs_answers(sabotaged, tmp_path) -> None:
    """The negative control."""
    mark = tmp_path / "failing"
    host = sabotaged(RAISES.format(mark=str(mark)) + UNSAFE)
    mark.touch()
    assert {host.ask().status_code for _ in range(TRIES)} == {500}


class BlindedHost:
    """A host's board while its telemetry hangs; use with `with`."""

    def __init__(self, host) -> None:
        runtime = Runtime.load(host.state / "run" / "runtime.json")
        (self._pid,) = host.pids("gateway.host.telemetry")
        self.board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
        self.most = [0.0] * len(runtime.layout.engines)  # sequences at once
        self.said: list[dict[EngineCell, float]] | None = None  # by the test, in telemetry's place
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        os.kill(self._pid, signal.SIGSTOP)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.board.close()
        with contextlib.suppress(ProcessLookupError):  # it may have been ended for hanging
            os.kill(self._pid, signal.SIGCONT)

    def _look(self) -> None:
        while not self._over.wait(0.002):
            for engine, most in enumerate(self.most):
                self.most[engine] = max(most, self.board.loads(engine)[LoadCell.SEQUENCES])
            if self.said is not None:
                now_s = time.monotonic()
                self.board.record_alive(now_s)
                for engine, broken in enumerate(self.said):
                    self.board.publish(engine, {EngineCell.UPDATED_S: now_s, **broken})


@contextlib.contextmanager
def blinded(host) -> Iterator[BlindedHost]:
    with BlindedHost(host) as found:
        yield found


def test_a_board_that_says_nonsense_of_an_engine_is_no_room_there(make_host, patiently) -> None:
    """Somebody else's telemetry would be heard: only what it says of the first engine is broken."""
    host = make_host(telemetry={"scrape_s": 0.1, "stale_s": STALE_S})
    host.start()
    patiently(lambda: host.ask().headers["x-breakeven-backend"] == "pool:main/0")
    with blinded(host) as seen:
        rows = [seen.board.published(engine) for engine in range(2)]
        well = [dict(zip(EngineCell, row, strict=True)) for row in rows]
        for word in well:
            del word[EngineCell.UPDATED_S]
        for broken in ({}, *NONSENSE):
            seen.said = [{**well[0], **broken}, well[1]]
            time.sleep(0.1)
            answers = [host.ask() for _ in range(TRIES)]
            assert {answer.status_code for answer in answers} == {200}, broken
            places = {answer.headers["x-breakeven-backend"] for answer in answers}
            # Without nonsense most go there; on a busy machine one may be sent to the other.
            assert (places == {"pool:main/1"}) == bool(broken), (broken, places)
    assert host.metric("breakeven_static_decisions_total") == 0.0, "nothing failed for that"


def crowded(host, crowd, patiently) -> tuple[list[float], list[Any]]:
    """(most at once at each engine, what came of a crowd) while telemetry hangs."""
    with blinded(host) as seen:
        patiently(lambda: reason(host.ask()) == "static")
        port = int(host.url.rpartition(":")[2])
        asked = crowd.ask(
            port, 200.0, CROWD / 200.0, host.token, model="own", max_tokens=400, ignore_eos=True
        )
        patiently(lambda: len(asked) == CROWD and all(request.took_s for request in asked), 60)
        assert host.metric("breakeven_telemetry_silent_seconds") > 1.0
        return seen.most, asked


def of_few_places() -> dict[str, Any]:
    engine = {
        "kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "served_name": "llama",
        "replicas": 2, "port": 0, "max_num_seqs": PLACES,
    }  # fmt: skip
    gpu = {"type": "H200", "usd_per_hour": "3.50"}
    return {"pools": {"main": {"engine": engine, "gpu": gpu}}}


def test_what_is_stale_is_filled_by_half(make_host, crowd, patiently) -> None:
    host = make_host(telemetry={"scrape_s": 0.1, "stale_s": STALE_S}, **of_few_places())
    host.start()
    most, asked = crowded(host, crowd, patiently)
    served = sum(request.status == 200 for request in asked)
    print(f"\n{CROWD} ask while telemetry hangs: {served} served, at once {most} of {PLACES}")
    assert max(most) <= SHARE * PLACES + RACE
    assert served >= 2 * SHARE * PLACES
    assert {request.status for request in asked} <= {200, 429, 503}
    assert all(request.whole for request in asked if request.status == 200)
    assert all("retry-after" in request.headers for request in asked if request.status != 200)
    assert any("telemetry is silent" in line for line in logged(host))


def test_without_that_half_it_is_filled_as_if_it_were_fresh(sabotaged, crowd, patiently) -> None:
    """The negative control."""
    host = sabotaged(TRUSTS, **of_few_places())
    most, _ = crowded(host, crowd, patiently)
    assert max(most) > SHARE * PLACES + RACE


def logged(host) -> list[str]:
    return [
        line
        for path in (host.state / "logs").glob("*.log")
        for line in path.read_text(errors="replace").splitlines()
    ]
