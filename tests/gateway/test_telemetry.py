"""Telemetry on a live host: health, steps and samples published; blind and gone engines seen."""

import asyncio

import httpx
import pytest
from sqlalchemy import text

from backends import health
from backends.health import State
from gateway import telemetry as telemetry_module
from gateway.clock import Clock
from gateway.slots import HEALTHS, Board, Published
from gateway.telemetry import Telemetry, main


def published(stack, row: int = 0) -> list[float]:
    return stack.board.published(row)


def test_a_healthy_engine_is_published_with_its_step_model(stack) -> None:
    cells = published(stack)
    assert HEALTHS[int(cells[Published.HEALTH])] == "healthy"
    assert cells[Published.KV_CAPACITY_TOKENS] > 900_000
    assert cells[Published.A_S] == pytest.approx(3.347e-3)
    assert cells[Published.CONTEXT_TOKENS] == 131_072
    assert abs(Clock().now_s() - cells[Published.UPDATED_S]) < 10


def test_capacity_and_catalog_are_stored_once_per_engine(stack, patiently) -> None:
    def stored() -> list:
        with stack.reader.connect() as connection:
            query = text(
                "SELECT c.engine, c.kv_capacity_tokens, c.step_a_s, g.kind, g.gpu_type, g.simulated"
                " FROM capacity c JOIN catalog g ON g.engine = c.engine ORDER BY c.engine"
            )
            return [tuple(row) for row in connection.execute(query)]

    rows = patiently(lambda: found if len(found := stored()) == 2 else [])
    assert rows[1][0] == "pool:main/0"
    assert rows[1][1] > 900_000
    assert rows[1][3:] == ("simulated", "H200", 1)


@pytest.fixture
def watched(stack, tmp_path):
    """A second telemetry with a board of its own, driven by the test."""
    board = Board(tmp_path / "board", stack.runtime.layout)
    yield Telemetry(stack.settings, stack.runtime, board, stack.database, Clock())
    board.close()


def look(telemetry, answer: httpx.Response | Exception, state=None):
    def handler(_request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def once():
        transport = httpx.MockTransport(handler)
        async with httpx.AsyncClient(transport=transport) as client:
            before = state or health.attached(0.0)
            return await telemetry._look(telemetry._seats[0], telemetry._watches[0], client, before)

    return asyncio.run(once())


@pytest.mark.parametrize(
    "answer",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("silent"),
        httpx.Response(500),
        httpx.Response(200, text="vllm:num_requests_running 3\n"),  # no KV gauge: blind
        httpx.Response(200, text="<html>"),
    ],
)
def test_what_cannot_be_read_is_never_healthy(watched, answer) -> None:
    state = look(watched, answer)
    assert state.state is not State.HEALTHY
    assert watched._watches[0].sample is None


def test_samples_reach_the_ledger(stack, watched, monkeypatch, patiently) -> None:
    monkeypatch.setattr(telemetry_module, "SAMPLE_S", 0.05)

    async def some() -> None:
        task = asyncio.create_task(watched.run())
        await asyncio.sleep(0.8)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(some())
    with stack.reader.connect() as connection:
        query = text("SELECT engine, health, simulated FROM engine_samples ORDER BY at_us DESC")
        rows = {tuple(row) for row in connection.execute(query)}
    assert ("pool:main/0", "healthy", 1) in rows


def test_every_argument_is_needed(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["--config", "c"])
    assert "--runtime" in capsys.readouterr().err
