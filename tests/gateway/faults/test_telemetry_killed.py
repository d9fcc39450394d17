"""Telemetry is killed under load: its successor goes on with what the board says, at once.

Meanwhile nobody reads more room into an engine than it has: what workers do themselves stays
counted. The control: with an empty board its engines are met anew. What holds while nobody
publishes for longer: `tests/gateway/request/test_degraded_decider.py`.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import Self

import pytest

from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_views import engine_state
from gateway.runtime import Runtime
from gateway.table_layout import EngineCell, LoadCell
from router.types import TargetHealth

PER_S, SECONDS, TOKENS = 8.0, 25.0, 40
LONG_S = 60.0
PUBLISHED = (EngineCell.KV_CAPACITY_TOKENS, EngineCell.A_S, EngineCell.MAX_NUM_SEQS)

pytestmark = pytest.mark.long


@dataclass(frozen=True, slots=True)
class Look:
    """One engine on the board, and what of it counts for headroom."""

    health: TargetHealth
    age_s: float
    taken_tokens: int  # that its state says are promised or held
    own_tokens: float  # that the workers themselves have promised
    said: tuple[float, ...]  # `PUBLISHED`


class EngineWatch:
    """Looks at the first engine a hundred times a second; use with `with`."""

    def __init__(self, host, stale_s: float) -> None:
        runtime = Runtime.load(host.state / "run" / "runtime.json")
        self.board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
        self.looks: list[Look] = []
        self._stale_s, self._over = stale_s, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.board.close()

    def _look(self) -> None:
        board = self.board
        while not self._over.wait(0.01):
            published, loads = board.published(0), board.loads(0)
            now_s, life = time.monotonic(), board.life(0)
            state = engine_state(published, loads, now_s, self._stale_s, life=life)
            said = tuple(published[cell] for cell in PUBLISHED)
            own = max(
                loads[LoadCell.PROMISED_TOKENS],
                loads[LoadCell.CONTEXT_TOKENS] + loads[LoadCell.QUEUED_PREFILL_TOKENS],
            )
            taken = int(state.kv_taken_tokens)
            self.looks.append(Look(state.health, state.age_s, taken, own, said))


def telemetry(host) -> int:
    (pid,) = host.pids("gateway.host.telemetry")
    return pid


def killed(host, looking, patiently, *, before_it=lambda: None) -> list[Look]:
    """What was seen from its death until its successor has read the engine itself."""
    board, begun = looking.board, len(looking.looks)
    read_s, gone = board.published(0)[EngineCell.UPDATED_S], telemetry(host)
    os.kill(gone, signal.SIGKILL)
    patiently(lambda: gone not in host.pids("gateway.host.telemetry"))
    died_s = time.monotonic()
    before_it()
    patiently(lambda: board.published(0)[EngineCell.UPDATED_S] > max(read_s, died_s), 60)
    time.sleep(1.0)
    return looking.looks[begun:]


def asked(host, crowd):
    port = int(host.url.rpartition(":")[2])
    return crowd.ask(port, PER_S, SECONDS, host.token, model="own", max_tokens=TOKENS)


def test_its_successor_goes_on_with_what_the_board_says(make_host, crowd, patiently) -> None:
    host = make_host(telemetry={"scrape_s": 0.1, "stale_s": LONG_S})
    host.start()
    with EngineWatch(host, LONG_S) as looking:
        patiently(lambda: looking.looks and looking.looks[-1].health is TargetHealth.HEALTHY)
        before = looking.looks[-1].said
        busy = asked(host, crowd)
        patiently(lambda: looking.board.loads(0)[LoadCell.SEQUENCES] > 0)
        seen = killed(host, looking, patiently)
        patiently(
            lambda: len(busy) == PER_S * SECONDS and all(item.took_s for item in busy), SECONDS + 60
        )
        oldest = max(event.age_s for event in seen)
        print(f"\n{len(seen)} looks; its page was {oldest:.1f} s old at most")
        assert {item.status for item in busy} == {200}
        assert all(item.whole for item in busy)
        assert {event.health for event in seen} == {TargetHealth.HEALTHY}, "no capacity is lost"
        assert {event.said for event in seen} == {before}, "nothing is measured again"
        assert all(event.taken_tokens >= int(event.own_tokens) - TOKENS for event in seen)

        def forgets() -> None:
            """The negative control: nothing to take over."""
            row = looking.board.published_row(0)
            for cell in EngineCell:
                looking.board.cells[row + cell] = 0.0

        anew = killed(host, looking, patiently, before_it=forgets)
        lost = sum(item.health is not TargetHealth.HEALTHY for item in anew)
        print(f"with an empty board the engine was away for {lost} of {len(anew)} looks")
        assert lost > 0
