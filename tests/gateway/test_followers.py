"""A worker looks at what is published, and follows when it knows less."""

import asyncio

import pytest

from gateway import followers
from gateway.followers import FOLLOW_S, LOOK_S, keep_up
from ledger.identity.keyring import KeyGeneration


class FollowedSource:
    """Takes what it is told the second time: the first time its source is away."""

    def __init__(self) -> None:
        self.known = 3
        self.told: list[int] = []
        self.done = asyncio.Event()

    async def follow(self, newest: int) -> bool:
        self.told.append(newest)
        if len(self.told) > 1:
            self.known = newest
            self.done.set()
        return len(self.told) > 1


async def test_a_newer_number_is_followed_until_it_is_known(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(followers, "LOOK_S", 0.001)
    published, followed = KeyGeneration(tmp_path, "a.newest"), FollowedSource()
    published.publish(3)
    task = asyncio.create_task(keep_up(tmp_path, "a.newest", followed))
    await asyncio.sleep(0.02)
    assert followed.told == []  # nothing newer
    published.publish(5)
    await followed.done.wait()
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert followed.told == [5, 5]
    published.close()


def test_the_time_that_is_promised_has_room_for_both_looks() -> None:
    assert LOOK_S < FOLLOW_S / 2
