"""A journal that takes no new work, as the parent tells of it."""

import asyncio
from types import SimpleNamespace

import httpx

from gateway.host import journalwatch as module
from gateway.host.journalwatch import follow


async def test_the_parent_says_each_change_once(monkeypatch) -> None:
    stalled = "journal w0-a cannot be read on: EIO"
    answers = [
        [], ["journal"], ["journal", "draining"], None, ["journal"], [], [],
        [stalled], [stalled], [],
    ]  # fmt: skip
    said: list[str] = []
    ended = asyncio.Event()
    monkeypatch.setattr(module, "ASKED_S", 0.001)

    usual = httpx.AsyncClient.get

    async def get(client, url, **options):
        if url != "http://127.0.0.1:8080/readyz":  # another test's thread asks something else
            return await usual(client, url, **options)
        if not answers:
            ended.set()
            return SimpleNamespace(json=lambda: {"missing": []})
        missing = answers.pop(0)
        if missing is None:
            raise httpx.ConnectError("gone")
        return SimpleNamespace(json=lambda: {"missing": missing})

    monkeypatch.setattr(httpx.AsyncClient, "get", get)
    task = asyncio.create_task(follow(("0.0.0.0", 8080), said.append, "logs/worker-*"))
    await asyncio.wait_for(ended.wait(), 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(said) == 4
    assert stalled in said[2]
    assert said[3] == "all journals are read again"
    assert "journal takes no new work" in said[0]
    assert "logs/worker-*" in said[0]
    assert "again" in said[1]
