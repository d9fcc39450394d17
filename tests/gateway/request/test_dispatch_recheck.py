"""Sent to an engine that another host had filled: moved once that is heard, and only then."""

import asyncio
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.errors import DispatchSuperseded
from gateway.clock import Clock
from gateway.fleet.peers.peer_load import NOTHING, PeerEngineLoad
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request import dispatch_recheck
from gateway.request.dispatch_recheck import DispatchRecheck
from gateway.request.silent_engine import SilentEngineDetector
from gateway.table_layout import LoadCell, TableLayout
from router.request_kinds import RequestKind
from router.types import (
    ApiState,
    Candidate,
    EngineState,
    OutputMoments,
    Policy,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
)

STATE = EngineState(
    TargetHealth.HEALTHY,
    StepModel(4.79e-3, 28e-6, 46.8e-9, 27.8e-6, 13.8e-3),
    0,
    0,
    0.0,
    0.0,
    480_000,
    0.0,
    0.0,
    16,
    256,
    2048,
)
CHAT = frozenset({RequestKind.CHAT})
OWN = Candidate("pool:a/0", "a", frozenset(), CHAT, 32_768, True, 0, 0, 10**9, engine=STATE)
API = Candidate("x/m", None, frozenset(), CHAT, 10**6, False, 10**9, 10**9, api=ApiState())
REQUEST = RoutingRequest(
    RequestKind.CHAT, "chat", 4000, 4400, 200, OutputMoments(50, 100.0, 15e3, 300.0)
)
POLICY = Policy("p", Slo(ttft_ms=500.0, tpot_ms=50.0))
FULL = PeerEngineLoad(3, 0, 15_000, 16_000, 3, 0, 0.0)  # read in 0.4 s


def attempt(**changes: object) -> SimpleNamespace:
    """As much of one as is looked at."""
    frozen = SimpleNamespace(target=SimpleNamespace(row=0), candidate=OWN)
    plan = SimpleNamespace(
        request=REQUEST, policy=POLICY, changed=False,
        frozen=[SimpleNamespace(candidate=OWN), SimpleNamespace(candidate=API)],
    )  # fmt: skip
    step = SimpleNamespace(frozen=frozen, verdict=SimpleNamespace(candidate=OWN))
    made = SimpleNamespace(
        plan=plan, step=step, number=1, last=False, own=True, first_token_s=None, tries=object()
    )
    made.leads_on = lambda _: not made.last
    for name, value in changes.items():
        setattr(plan if name == "changed" else made, name, value)
    return made


@pytest.fixture
def board(tmp_path: Path):
    layout = TableLayout(workers=2, engines=("pool:a/0",), apis=(), peers=True)
    board = SharedLoadTable(tmp_path / "board", layout)
    PeerLoadRow(board).record_alive(1.0, 1)
    yield board
    board.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    monkeypatch.setattr(dispatch_recheck, "LOOK_S", 0.0)


def ends(
    board: SharedLoadTable, sent: SimpleNamespace, *, before=NOTHING, after=FULL, hosts: int = 1
) -> str:
    """How a wait goes on while the others' share changes."""
    peers = PeerLoadRow(board)

    async def waits(silences: SilentEngineDetector) -> str:
        try:
            with silences.watch_attempt(sent, asyncio.current_task()):  # type: ignore[arg-type]
                await asyncio.Event().wait()
        except DispatchSuperseded:
            return "moved"
        return "answered"

    async def play() -> str:
        peers.write(0, before, 1.0)
        silences = SilentEngineDetector(board, 0, Clock(), DispatchRecheck(board).schedule_recheck)
        waiting = asyncio.create_task(waits(silences))
        await asyncio.sleep(0)
        peers.write(0, after, 1.0)
        peers.record_alive(1.0, hosts)
        for _ in range(20):
            await asyncio.sleep(0)
        if waiting.done():
            return await waiting
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return "waits"

    return asyncio.run(play())


def test_who_was_sent_in_ignorance_is_moved(board) -> None:
    assert ends(board, attempt()) == "moved"


@pytest.mark.parametrize(
    "others",
    [
        {"before": FULL},
        {"after": NOTHING},
        {"after": PeerEngineLoad(1, 0, 200, 512, 1, 0, 0.0)},
        {"before": FULL, "after": NOTHING},
        {"hosts": 2},
    ],
)
def test_what_was_known_or_is_little_moves_nobody(board, others) -> None:
    """Nor what a host has that was not heard before: the scrapes had counted it."""
    assert ends(board, attempt(), **others) == "waits"


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 2},  # by the decision of the first
        {"last": True},  # nowhere else to go
        {"changed": True},  # not decided by these candidates
        {"first_token_s": 1.0},
        {"tries": None},  # its answer has begun
        {"own": False},
    ],
)
def test_who_could_not_gain_goes_on_waiting(board, changes) -> None:
    assert ends(board, attempt(**changes)) == "waits"


def test_while_nobody_is_heard_nothing_is_done(board) -> None:
    PeerLoadRow(board).record_alive(1.0, 0)
    assert ends(board, attempt(), hosts=0) == "waits"


SLOW = {"name": "slow", "slo": {"ttft_ms": 500, "tpot_ms": 50}}
PEERS = {"listen": "127.0.0.1:1", "hosts": ["127.0.0.1:2"], "secret_env": "PEERS"}


def test_a_request_goes_to_the_next_target_and_the_engines_part_costs_nothing(
    run_stack, patiently, monkeypatch
) -> None:
    monkeypatch.setattr(dispatch_recheck, "LOOK_S", 3.0)
    with run_stack(peers=PEERS, policies=[SLOW]) as stack:
        peers = PeerLoadRow(stack.board)
        peers.record_alive(time.monotonic(), 1)
        body = {  # in one piece, so that its engine says nothing for seconds
            "model": "chat", "messages": [{"role": "user", "content": "word " * 2000}],
            "max_tokens": 2500, "ignore_eos": True,
        }  # fmt: skip
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(stack.post("/v1/chat/completions", body))
        )
        asking.start()
        patiently(lambda: stack.board.own_loads(0)[LoadCell.SEQUENCES] == 1.0)
        peers.write(0, PeerEngineLoad(3, 0, 60_000, 61_000, 3, 0, 0.0), time.monotonic())
        asking.join(60)
        assert answers[0].headers["x-breakeven-backend"] == "alpha/m"
        first, second = stack.settled(answers[0], 2)
        assert (first["target"], first["status"]) == ("pool:main/0", "rejected")
        assert (first["error"], first["cost_pusd"]) == ("overtaken", 0)
        assert (second["target"], second["status"]) == ("alpha/m", "finished")
        assert stack.board.own_loads(0)[LoadCell.SEQUENCES] == 0.0
