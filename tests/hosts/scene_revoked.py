"""A key is revoked while all hosts work; each worker of each is asked with it, before and after.

Revoked is when the ledger has it; a request counts by the moment in which it was sent.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx
from play import Play

from ledger.database import make_engine
from ledger.identity.keys import CreatedKey, KeySpec, create_key, load_pepper, revoke_key

LIMIT_S, AFTER_S = 1.0, 2.5  # watched for so long: who is let in again then came back to life
ROUNDS, ASKING = 5, 4  # of each host
FOUND_S = 60.0
LetIn = list[tuple[float, str]]  # when it was sent, and the worker that answered


def revoked(play: Play) -> None:
    """Revocation after revocation, at the ledger that all hosts share."""
    crowd = play.crowd(play.house.hosts, callers=4)
    late = [asyncio.run(_revoked(play, f"leaves {number}")) for number in range(ROUNDS)]
    play.ended(crowd)
    last_s = round(max(late), 3)
    play.found.expect("let in after a revocation, s", last_s, holds=last_s <= LIMIT_S)
    play.say(f"{ROUNDS} keys revoked, the last let in after {last_s} s")


async def _revoked(play: Play, name: str) -> float:
    """Seconds from the commit to the last request that any worker of any host let in."""
    hosts, ledger = play.house.hosts, make_engine(play.house.ledger)
    key = await asyncio.to_thread(_made, ledger, hosts[0], name)
    let_in: LetIn = []
    over = asyncio.Event()
    asking = [
        asyncio.create_task(_asks(host, key.token, let_in, over))
        for host in hosts
        for _ in range(ASKING)
    ]
    async with asyncio.timeout(FOUND_S):
        while len({worker for _, worker in let_in}) < _workers(hosts):  # noqa: ASYNC110  (no event is set)
            await asyncio.sleep(0.05)
    await asyncio.to_thread(_end, ledger, key)
    committed_s = time.monotonic()
    await asyncio.sleep(AFTER_S)
    over.set()
    await asyncio.gather(*asking)
    ledger.dispose()
    return max(0.0, max(sent_s for sent_s, _ in let_in) - committed_s)


async def _asks(host: Any, token: str, let_in: LetIn, over: asyncio.Event) -> None:
    """On a connection of its own each time: any worker of the host may answer."""
    headers = {"authorization": f"Bearer {token}", "connection": "close"}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        while not over.is_set():
            sent_s = time.monotonic()
            answer = await client.get(f"{host.url}/v1/models", headers=headers)
            if answer.status_code == 200:
                worker = answer.headers["x-request-id"][16:26]
                let_in.append((sent_s, f"{host.url} {worker}"))


def _made(ledger: Any, host: Any, name: str) -> CreatedKey:
    pepper, now_us = load_pepper(host.state), time.time_ns() // 1000
    with ledger.begin() as connection:
        return create_key(connection, KeySpec(name), pepper=pepper, now_us=now_us)


def _end(ledger: Any, key: CreatedKey) -> None:
    with ledger.begin() as connection:
        revoke_key(connection, key.key_id, now_us=time.time_ns() // 1000)


def _workers(hosts: Sequence[Any]) -> int:
    return sum(int(host.workers) for host in hosts)
