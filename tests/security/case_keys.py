"""S4 and E8: keys that end, and keys that are guessed.

S4 asks on every worker of a host while keys are revoked, and counts from the commit of the
revocation to the last request that was let in. E8 sends well-formed keys that nobody has.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from case import Case, CaseFigures, Given
from parts import Host, Stack
from sqlalchemy import create_engine

from ledger.identity import keyring
from ledger.identity.keyring import KeyRing
from ledger.identity.keys import KeySpec, create_key, load_pepper, revoke_key
from ledger.identity.tokens import TokenParts, split_token

WORKERS, ROUNDS, ASKING = 4, 20, 12
AFTER_S = 2.5  # a revocation is watched for so long: who is let in again then came back to life
GUESSES, QUICK_GUESSES = 50_000, 12_000
PAIRS = 4_000
# A worker that never hears that a key has changed.
DEAF = "import ledger.identity.keyring as k\nk.KeyGeneration.read = lambda self: 0\n"


def revoked(given: Given) -> CaseFigures:
    """Seconds from the commit to the last request that was still let in, over all workers."""
    rounds = (ROUNDS if given.full else 3) if not given.broken else 1
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder) / "state", server={"port": 0, "workers": WORKERS})
        if given.broken:
            place = Path(folder) / "site"
            place.mkdir()
            (place / "sitecustomize.py").write_text(DEAF)
            host.environ["PYTHONPATH"] = str(place)
        try:
            host.start()
            found = [asyncio.run(_one(host, number)) for number in range(rounds)]
        finally:
            host.close()
    late = max(last_s for last_s, _, _ in found)
    asked = sum(count for _, count, _ in found)
    short = [workers for _, _, workers in found if workers < WORKERS]
    faults = (f"only {min(short)} workers were asked",) if short else ()
    words = f"{rounds} revocations, {WORKERS} workers, {asked} requests"
    return CaseFigures(round(late, 3), words, faults)


async def _one(host: Any, number: int) -> tuple[float, int, int]:
    engine = create_engine(host.ledger)
    pepper, wall_us = load_pepper(host.state), time.time_ns() // 1000
    with engine.begin() as connection:
        key = create_key(connection, KeySpec(f"k{number}"), pepper=pepper, now_us=wall_us)
    let_in: list[tuple[float, str]] = []
    count = [0]
    over = asyncio.Event()
    headers = {"authorization": f"Bearer {key.token}", "connection": "close"}

    async def asks() -> None:
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=60) as client:
            while not over.is_set():
                began = time.monotonic()
                answer = await client.get(f"{host.url}/v1/models", headers=headers)
                count[0] += 1
                if answer.status_code == 200:
                    let_in.append((began, answer.headers["x-request-id"][16:26]))

    tasks = [asyncio.create_task(asks()) for _ in range(ASKING)]
    async with asyncio.timeout(120):
        while len({worker for _, worker in let_in}) < WORKERS:  # noqa: ASYNC110  (answers set no event)
            await asyncio.sleep(0.05)
    with engine.begin() as connection:
        revoke_key(connection, key.key_id, now_us=time.time_ns() // 1000)
    committed = time.monotonic()
    await asyncio.sleep(AFTER_S)
    over.set()
    await asyncio.gather(*tasks)
    engine.dispose()
    last = max(began for began, _ in let_in)
    return max(0.0, last - committed), count[0], len({worker for _, worker in let_in})


def remembered(given: Given) -> CaseFigures:
    """Entries that guesses leave in a worker; a key in use must not be looked up for them."""
    count, limit = GUESSES if given.full else QUICK_GUESSES, keyring.CACHED_UNKNOWN
    if given.broken:
        keyring.CACHED_UNKNOWN = 10**9
    try:
        entries, missed = _with_ring(lambda ring, valid: _guess(ring, valid, count))
    finally:
        keyring.CACHED_UNKNOWN = limit
    faults = (f"a key in use was looked up {missed} times",) if missed else ()
    return CaseFigures(entries, f"{count:,} guessed keys", faults)


def _with_ring(work: Callable[[KeyRing, str], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), {}) as stack:
        ring = KeyRing(stack.database, stack.runtime.run_dir, stack.state)
        try:
            return work(ring, stack.token)
        finally:
            ring.close()


def _guess(ring: KeyRing, valid: str, count: int) -> tuple[int, int]:
    rng = random.Random(8)

    async def guess() -> tuple[int, int]:
        now_us, missed = time.time_ns() // 1000, 0
        assert await ring.lookup(valid, now_us) is not None
        for _ in range(count // 100):
            tokens = [f"gw_{rng.randbytes(8).hex()}_{rng.randbytes(32).hex()}" for _ in range(100)]
            found = await asyncio.gather(*(ring.lookup(token, now_us) for token in tokens))
            assert not any(found)
            missed += ring.recall(valid, now_us) is None
        kept = len(ring._unknown) + len(ring._known) + len(ring._checked)
        return kept - 2, missed

    return asyncio.run(guess())


def told_apart(given: Given) -> CaseFigures:
    """How well the time of a refusal tells a secret that is right but for its end from any other.

    The area under the curve of both, from 0.5 (not at all) to 1.
    """
    usual = keyring.is_match
    if given.broken:
        keyring.is_match = _by_letters
    try:
        near, far = _with_ring(_timed)
    finally:
        keyring.is_match = usual
    order = sorted([(item, 1) for item in near] + [(item, 0) for item in far])
    ranks = sum(place for place, (_, is_near) in enumerate(order, 1) if is_near)
    area = (ranks - len(near) * (len(near) + 1) / 2) / (len(near) * len(far))
    return CaseFigures(round(max(area, 1 - area), 3), f"{len(near):,} of each")


def _by_letters(stored: bytes, pepper: bytes, parts: TokenParts) -> bool:
    """What nobody should do: the secret compared letter by letter, up to the first other one."""
    del stored, pepper
    return all(item == other for item, other in zip(parts.secret, _SECRET[0], strict=False))


_SECRET = [""]


def _timed(ring: KeyRing, valid: str) -> tuple[list[int], list[int]]:
    parts, rng = split_token(valid), random.Random(9)
    assert parts is not None
    _SECRET[0] = parts.secret
    other = {"0": "1"}.get(parts.secret[-1], "0")
    near, times = f"gw_{parts.key_id}_{parts.secret[:-1]}{other}", {True: [], False: []}  # type: ignore[var-annotated]

    async def time_them() -> None:
        now_us = time.time_ns() // 1000
        await ring.lookup(valid, now_us)
        for number in range(2 * PAIRS):
            is_near = bool(rng.randrange(2))
            far = f"gw_{parts.key_id}_{rng.randbytes(len(parts.secret) // 2).hex()}"
            token = near if is_near else far
            began = time.thread_time_ns()
            await ring.lookup(token, now_us)
            if number > 200:
                times[is_near].append(time.thread_time_ns() - began)

    asyncio.run(time_them())
    return times[True], times[False]


CASES = (
    Case(
        "S4", "last let in after a revocation", revoked, "workers that never hear of it", 1.0, "s"
    ),
    Case("E8", "entries that guesses leave", remembered, "no limit", 10_000),
    Case("E8", "a near guess told from any", told_apart, "compared by letters", 0.55, "AUC"),
)
