"""A journal that takes no new work, as the parent tells of it."""

import asyncio
import json

from backends.errors import UpstreamUnreachable
from gateway.host import journalwatch as module
from gateway.host.journalwatch import follow
from gateway.host.page_reader import PageReader, PageText


async def test_the_parent_says_each_change_once(monkeypatch) -> None:
    stalled = "journal w0-a cannot be read on: EIO"
    answers = [
        [], ["journal"], ["journal", "draining"], None, ["journal"], "<html>", [], [],
        [stalled], [stalled], [],
    ]  # fmt: skip
    said: list[str] = []
    ended = asyncio.Event()
    monkeypatch.setattr(module, "ASKED_S", 0.001)

    async def read(_pages: PageReader, path: str) -> PageText:
        assert path == "/readyz"
        if not answers:
            ended.set()
            return PageText(200, '{"missing": []}')
        missing = answers.pop(0)
        if missing is None:
            raise UpstreamUnreachable("gone")
        text = missing if isinstance(missing, str) else json.dumps({"missing": missing})
        return PageText(503 if missing else 200, text)

    monkeypatch.setattr(PageReader, "read", read)
    task = asyncio.create_task(follow(("0.0.0.0", 8080), said.append, "logs/worker-*"))
    await asyncio.wait_for(ended.wait(), 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(said) == 4
    assert stalled in said[2]
    assert said[3] == "ready: all journals can be read again"
    assert "journal rejects new records" in said[0]
    assert "logs/worker-*" in said[0]
    assert "again" in said[1]
