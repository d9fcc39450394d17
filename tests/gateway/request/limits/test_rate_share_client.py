"""What a worker hears from its host's rate desk, and what it does where there is none."""

import asyncio

import pytest

from gateway.request.limits import rate_share_client
from gateway.request.limits.rate_share_client import (
    ASKS,
    RATE_SOCKET,
    RateServiceUnavailable,
    RateShareClient,
    RateShareReply,
)
from gateway.request.limits.rate_table import RateLimitAccount
from ledger.budgets.broker_protocol import frame, payloads

ACCOUNTS = (RateLimitAccount("key:a", (10, None)), RateLimitAccount("team:t", (None, 500)))


async def answering(path, told):
    """A desk that answers by `told`; `None` as answer: it hangs up."""
    asked = []

    async def serve(reader, writer) -> None:
        async for payload in payloads(reader):
            asked.append(ASKS.decode(payload))
            if told[len(asked) - 1] == "hangs up":
                break
            writer.write(frame(RateShareReply(asked[-1].number, told[len(asked) - 1])))
        writer.close()

    return await asyncio.start_unix_server(serve, path / RATE_SOCKET), asked


def test_the_desk_says_whether_to_try_again_and_is_met_again_after_it_ended(tmp_path) -> None:
    async def play() -> list:
        server, asked = await answering(tmp_path, [True, False, None, "hangs up", True])
        asking, heard = RateShareClient(tmp_path), []
        for _ in range(5):
            try:
                heard.append(await asking.request_share(ACCOUNTS, 7))
            except RateServiceUnavailable:
                heard.append("away")
        asking.close()
        server.close()
        await asyncio.sleep(0.05)  # for both to let go of their sockets
        assert asked[0].accounts == (("key:a", 10, None), ("team:t", None, 500))
        assert [request.tokens for request in asked] == [7] * 5
        return heard

    assert asyncio.run(play()) == [True, False, "away", "away", True]


def test_without_a_desk_nobody_can_tell(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(rate_share_client, "ANSWER_TIMEOUT_S", 0.2)

    async def play() -> None:
        asking = RateShareClient(tmp_path)
        with pytest.raises(RateServiceUnavailable):
            await asking.request_share(ACCOUNTS, 1)
        asking.close()

    asyncio.run(play())
