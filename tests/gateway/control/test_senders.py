"""A sender that fails begins again, and ends nothing beside it."""

import asyncio

import pytest

from gateway.control import senders
from gateway.control.senders import keep_running, run_senders


def test_a_chore_that_fails_begins_again(caplog) -> None:
    left = ["first", "second"]

    async def run() -> None:
        if left:
            raise ValueError(left.pop(0))

    asyncio.run(keep_running("reports", run, pause_s=0.0))
    assert not left
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "reports failed" in caplog.text


def test_what_is_cancelled_ends() -> None:
    async def cancel() -> None:
        task = asyncio.create_task(keep_running("events", asyncio.Event().wait, pause_s=0.0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_one_that_fails_leaves_the_others_alone(monkeypatch) -> None:
    class Sender:
        def __init__(self, *_parts: object) -> None:
            pass

    class FailingSender(Sender):
        async def run(self) -> None:
            raise ValueError

    class TellingSender(Sender):
        async def run(self) -> None:
            await asyncio.sleep(0.01)
            told.set()

    async def watch() -> None:
        task = asyncio.create_task(run_senders(None, None, None))  # type: ignore[arg-type]  # none is asked
        await asyncio.wait_for(told.wait(), 5.0)
        assert not task.done()
        task.cancel()

    told = asyncio.Event()
    monkeypatch.setattr(senders, "SENDERS", (FailingSender, TellingSender))
    asyncio.run(watch())
