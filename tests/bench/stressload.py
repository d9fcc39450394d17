"""The load of `bench_stress`: calls of many customers, by a client that notes what each was told.

A connection for each call, so that calls spread over a gateway's workers. A call that got no
answer (the gateway is being started again) or 503 is made again; 429 and any other refusal ends it.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from stressfigures import BUDGET_PUSD, INPUT_PUSD, OUTPUT_PUSD, ClientTally, dearest_pusd
from stressgateways import Gateway

MAX_TOKENS = 115  # a call costs a little under a quarter of a budget
BURST = 20
AT_ONCE = 10  # customers whose bursts overlap
OVERSIZED = (None, 100_000, 1_000_000_000, None)
CALLS, EVERY_S = 6, 3.0  # of a customer while something breaks
TRIES, AGAIN_S = 120, 0.5
CALL_LIMIT_S = 120.0
REFUSALS = (400, 402, 403, 422, 429)  # with the word budget in them


@dataclass
class Customer:
    """`open_pusd`: what calls that were sent and never answered may have cost."""

    name: str
    token: str
    spent_pusd: int = 0
    open_pusd: int = 0


@dataclass
class Crowd:
    """The customers of one scene at one gateway."""

    gateway: Gateway
    customers: Sequence[Customer]
    told: ClientTally = field(default_factory=ClientTally)
    rng: random.Random = field(default_factory=lambda: random.Random(7))

    async def burst(self) -> None:
        """Everybody asks `BURST` times at once, then one by one while there is room."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(customer: Customer) -> None:
            async with turns:
                asking = [self.call(customer, MAX_TOKENS) for _ in range(BURST)]
                await asyncio.gather(*asking)

        await asyncio.gather(*(one(customer) for customer in self.customers))
        await self.while_there_is_room(turns)

    async def oversized(self) -> None:
        """Calls without a limit or with one beyond any budget, at once and again one by one."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(customer: Customer) -> None:
            async with turns:
                await asyncio.gather(*(self.call(customer, limit) for limit in OVERSIZED))
                for limit in OVERSIZED[:2]:
                    await self.call(customer, limit)

        await asyncio.gather(*(one(customer) for customer in self.customers))
        await self.while_there_is_room(turns)

    async def steadily(self) -> None:
        """Everybody asks now and then, one call after the other, whatever happens meanwhile."""

        async def one(customer: Customer) -> None:
            await asyncio.sleep(self.rng.random() * EVERY_S)
            for _ in range(CALLS):
                await self.call_with_room(customer)
                await asyncio.sleep(EVERY_S * (0.5 + self.rng.random()))

        await asyncio.gather(*(one(customer) for customer in self.customers))
        await self.while_there_is_room(asyncio.Semaphore(4 * AT_ONCE))

    async def while_there_is_room(self, turns: asyncio.Semaphore) -> None:
        async def one(customer: Customer) -> None:
            async with turns:
                while self._room(customer):
                    if not await self.call_with_room(customer):
                        return

        await asyncio.gather(*(one(customer) for customer in self.customers))

    async def call_with_room(self, customer: Customer) -> bool:
        """A call beside which the customer has no other; a refusal while it fits is noted."""
        had_room = self._room(customer)
        outcome = await self.call(customer, MAX_TOKENS)
        if outcome == "refused" and had_room:
            self.told.unjustified.append(customer.name)
        return outcome == "answered"

    def _room(self, customer: Customer) -> bool:
        dearest = dearest_pusd(_body(customer, MAX_TOKENS), MAX_TOKENS)
        return customer.spent_pusd + customer.open_pusd + dearest <= BUDGET_PUSD

    async def call(self, customer: Customer, max_tokens: int | None) -> str:
        body = _body(customer, max_tokens)
        for _ in range(TRIES):
            try:
                async with asyncio.timeout(CALL_LIMIT_S):
                    status, answer = await _post(self.gateway.port, customer.token, body)
            except ConnectionRefusedError:
                self.told.outcomes["no gateway"] += 1
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                self.told.outcomes["cut off"] += 1
                customer.open_pusd += dearest_pusd(body, max_tokens or MAX_TOKENS)
            else:
                outcome = _outcome(status, answer)
                self.told.outcomes[outcome] += 1
                if outcome == "answered":
                    usage = json.loads(answer)["usage"]
                    customer.spent_pusd += _cost(usage)
                if outcome != "503":
                    return outcome
            await asyncio.sleep(AGAIN_S)
        return "gave up"


def _cost(usage: dict[str, int]) -> int:
    return usage["prompt_tokens"] * INPUT_PUSD + usage["completion_tokens"] * OUTPUT_PUSD


def _outcome(status: int, answer: bytes) -> str:
    if status == 200:
        return "answered"
    if status in REFUSALS and b"udget" in answer:
        return "refused"
    return str(status)


def _body(customer: Customer, max_tokens: int | None) -> bytes:
    words = f"customer {customer.name} asks"
    body = {"model": "mock", "messages": [{"role": "user", "content": words}]}
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    return json.dumps(body).encode()


async def _post(port: int, token: str, body: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\n"
            f"authorization: Bearer {token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        head_line = await reader.readuntil(b"\r\n\r\n")
        length = _length(head_line)
        answer = await (reader.read() if length is None else reader.readexactly(length))
        return int(head_line.split(b" ", 2)[1]), answer
    finally:
        writer.close()


def _length(head: bytes) -> int | None:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return None


def customers(gateway: Gateway, scene: str) -> list[Customer]:
    """Those of the gateway's customers who belong to the scene."""
    mine = f"{scene}-"
    return [Customer(*pair) for pair in gateway.tokens.items() if pair[0].startswith(mine)]
