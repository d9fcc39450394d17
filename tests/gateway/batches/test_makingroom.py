"""Lines that run end when live requests need the room: the newest first, and only there."""

import json

import pytest

from gateway.batches.authority import Ticket, load_authority
from gateway.batches.entrance import PREFIX, LineFlights
from gateway.batches.makingroom import MakingRoom
from gateway.clock import Clock
from gateway.targets.slots import Board, Layout
from router.idle import Promised
from router.types import EngineState, Health, StepModel

STEP = StepModel(a_s=5e-3, b_s=30e-6, c_s=50e-9, d_s=30e-6, t0_s=15e-3)


def state(running: int) -> EngineState:
    return EngineState(
        Health.HEALTHY, STEP, running, 0, 0.0, 0.0, 100_000, 0.0, 0.0, 16, 100, 2048
    )  # fmt: skip


class Reply:
    def __init__(self, name: str, opened_s: float, ended: list[str]) -> None:
        self.request_id, self.opened_s, self._ended = name, opened_s, ended

    def end(self, why: str) -> None:
        assert why == "client_gone"
        self._ended.append(self.request_id)


class Open:
    def __init__(self) -> None:
        self.ended: list[str] = []
        self.replies = [Reply(f"line-{n}", float(n), self.ended) for n in range(6)]

    def open_replies(self) -> list[Reply]:
        return [one for one in self.replies if one.request_id not in self.ended]


@pytest.fixture
def flights(tmp_path):
    layout = Layout(workers=1, engines=("pool:a/0", "pool:b/0"), apis=())
    board = Board(tmp_path / "board", layout)
    made = LineFlights(board, 0)
    made._engines = {f"line-{n}": n % 2 for n in range(6)} | {"gone": 0}
    yield made
    board.close()


def test_the_newest_of_a_strained_engine_ends_one_at_a_time(flights) -> None:
    hot, running = Open(), {0: 95, 1: 50}
    room = MakingRoom(hot, flights, lambda row: state(running[row]), lambda _: Promised())
    assert room.look() == 1
    assert hot.ended == ["line-4"]
    assert room.look() == 1
    assert hot.ended == ["line-4", "line-2"]
    running[0] = 60
    assert room.look() == 0


def test_what_is_over_is_forgotten(flights) -> None:
    assert flights.by_engine(["line-1", "elsewhere"]) == {1: ["line-1"]}
    assert flights.by_engine(["line-0", "line-1"]) == {1: ["line-1"]}


def test_a_line_that_made_room_is_told_so_billed_and_run_again(
    stack, client, line, runner, monkeypatch, patiently
) -> None:
    """Through the whole gateway: cut in the middle, it ends up answered by another try."""

    def rows() -> list[dict]:
        return stack.rows("request_id LIKE :id", id=f"{made['id']}-%")

    monkeypatch.setattr("gateway.batches.makingroom.strained", lambda *_: "live traffic")
    made = client.make([line("a", max_tokens=400, ignore_eos=True)])
    patiently(lambda: any(row["status"] == "client_gone" for row in rows()))
    monkeypatch.undo()
    done = client.ended(made)
    assert done["request_counts"]["completed"] == 1
    patiently(lambda: rows()[-1]["status"] == "finished")
    *cut, _ = rows()
    assert {row["status"] for row in cut} == {"client_gone"}
    assert len({row["request_id"] for row in rows()}) == len(rows()) >= 2
    assert runner._carrier.tally.again >= 1


def test_what_the_runner_hears(stack, monkeypatch) -> None:
    monkeypatch.setattr("gateway.batches.makingroom.strained", lambda *_: "live traffic")
    ticket = Ticket(stack.key("owner").key_id, "batch_m", "batch_m-1-1", Clock().wall_us() + 10**7)
    token = load_authority(stack.runtime.run_dir).sign(ticket)
    body = {"model": "own", "max_tokens": 900, "ignore_eos": True,
            "messages": [{"role": "user", "content": "hi"}]}  # fmt: skip
    answer = stack.client.post(
        f"{stack.url}{PREFIX}/v1/chat/completions", content=json.dumps(body),
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "made_room")
    assert answer.headers["x-request-id"] == "batch_m-1-1"
