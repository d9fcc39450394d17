"""The provider that every gateway of `bench_stress` forwards to: the simulator's, at its dearest.

    python tests/bench/stressupstream.py PORT JOURNAL

Each answer is as long as its request allows, and `MODEL_TOKENS` where it allows more or says
nothing. The journal names the customer, whom the prompt names, in place of the caller's request id:
so what a customer's requests were worked on is known whatever a gateway forwards.
"""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from backends.simulator import asgi
from backends.simulator.journal import RequestJournal
from backends.simulator.latency import Latency
from backends.simulator.provider import SimulatedProvider
from backends.simulator.quota import Quota
from backends.simulator.running import bind, run

MODEL_TOKENS = 4_000
CUSTOMER = re.compile(rb"customer ([a-z]+-[0-9]+)")
LATENCY = Latency(0.4, ttft_sigma=0.2, tpot_s=0.001, tpot_sigma=0.0)


class Upstream:
    def __init__(self, provider: SimulatedProvider) -> None:
        self._provider = provider

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            body = await asgi.read_body(receive)
            found = CUSTOMER.search(body)
            name = found[1] if found else b"nobody"
            kept = [pair for pair in scope["headers"] if pair[0] != b"x-request-id"]
            scope = {**scope, "headers": [*kept, (b"x-request-id", name)]}
            receive = _first(dearest(body), receive)
        await self._provider(scope, receive, send)


def dearest(body: bytes) -> bytes:
    fields = json.loads(body)
    asked = fields.pop("max_completion_tokens", None) or fields.get("max_tokens") or MODEL_TOKENS
    fields |= {"max_tokens": min(asked, MODEL_TOKENS), "ignore_eos": True}
    return json.dumps(fields).encode()


def _first(body: bytes, receive: Any) -> Any:
    """The body in one message, then what comes behind it."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Any:
        return left.pop() if left else await receive()

    return receiving


def main() -> None:
    port, journal = int(sys.argv[1]), Path(sys.argv[2])
    provider = SimulatedProvider(
        "mock", rng=random.Random(1), journal=RequestJournal(journal), latency=LATENCY,
        quota=Quota(100_000_000, 1_000_000_000_000),
    )  # fmt: skip
    run([("provider", Upstream(provider), bind("127.0.0.1", port))])


if __name__ == "__main__":
    main()
