"""KV transfer between simulated engines, in the format of vLLM's NixlConnector.

    request with kv_transfer_params.do_remote_decode    its KV is kept, the answer says where
    request with kv_transfer_params.do_remote_prefill   its KV is fetched, then it is answered
    POST /_kv/fetch, POST /_kv/free {"request_id": ...} between the two engines
    GET  /_kv                                           the KV kept here for others

The engine that fetches also frees, even if its client disconnects. Other KV is freed at the end of
its lease. A failed fetch fails the request (`kv_load_failure_policy: fail`).
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec

from backends.plain_http import make_plain_client
from backends.simulator.pacing import Pacer
from backends.simulator.shape import KvHandover

SETUP_S = 0.02
TOKEN_S = 131_072 / 10e9  # an 8B shape's KV at 10 GB/s
ASK_S = 5.0


class KvLoadError(Exception):
    """The KV of a prompt could not be fetched."""


class TransferMembers(msgspec.Struct):
    """The members of a request's `kv_transfer_params` that are read."""

    do_remote_decode: bool = False
    do_remote_prefill: bool = False
    remote_request_id: str | None = None
    remote_host: str | None = None
    remote_port: int | None = None


class _Body(msgspec.Struct):
    kv_transfer_params: TransferMembers | None = None


_read = msgspec.json.Decoder(_Body).decode


def transfer_members(body: bytes) -> TransferMembers | None:
    """Return the transfer parameters of a request, `None` without valid ones."""
    try:
        return _read(body).kv_transfer_params
    except msgspec.DecodeError:
        return None


@dataclass(slots=True)
class KvExchange:
    """One engine's side. `lease_s` is wall time; transfers take simulated seconds at `speed`."""

    pacer: Pacer
    name: str
    lease_s: float
    speed: float = 1.0
    setup_s: float = SETUP_S
    token_s: float = TOKEN_S
    expired: int = 0  # freed at the end of its lease
    asked: int = 0  # times that another engine began to fetch
    _kept: dict[str, tuple[int, asyncio.TimerHandle]] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        return len(self._kept)

    def offer(self, id: str, tokens: int, server: tuple[str, int]) -> dict[str, Any]:  # noqa: A002  (as on the wire)
        """Keep a finished request's KV. Return the parameters to fetch it by."""
        handle = asyncio.get_running_loop().call_later(self.lease_s, self._expire, id)
        self._kept[id] = tokens, handle
        return {
            "do_remote_prefill": True, "do_remote_decode": False, "remote_engine_id": self.name,
            "remote_block_ids": [[0]], "remote_request_id": id, "remote_host": server[0],
            "remote_port": server[1], "tp_size": 1, "remote_num_tokens": tokens,
        }  # fmt: skip

    def look_up(self, id: str) -> int | None:  # noqa: A002  (as on the wire)
        """Return the number of kept tokens of a request, `None` without any, as a fetch begins."""
        self.asked += 1
        held = self._kept.get(id)
        return None if held is None else held[0]

    def free(self, id: str) -> bool:  # noqa: A002  (as on the wire)
        """Free the kept KV of a request; false if there is none."""
        held = self._kept.pop(id, None)
        if held is None:
            return False
        held[1].cancel()
        return self.pacer.free_kept(id)

    def _expire(self, id: str) -> None:  # noqa: A002  (as on the wire)
        self.expired += 1
        self.free(id)

    async def fetch(self, asked: TransferMembers, gone: asyncio.Event) -> KvHandover | None:
        """Fetch a prompt's KV; `None` if its client disconnected. Raises `KvLoadError`."""
        origin = f"http://{asked.remote_host}:{asked.remote_port}"
        named = {"request_id": asked.remote_request_id}
        async with make_plain_client(timeout=ASK_S) as client:
            answer = await _ask(client, f"{origin}/_kv/fetch", named)
            tokens = answer.get("tokens")
            if not isinstance(tokens, int):
                raise KvLoadError("the other engine keeps no such KV")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._moving_s(tokens)):
                    await gone.wait()
            await _ask(client, f"{origin}/_kv/free", named)
        return None if gone.is_set() else KvHandover(is_moved=True)

    def _moving_s(self, tokens: int) -> float:
        return (self.setup_s + self.token_s * tokens) / self.speed


async def _ask(
    client: httpx.AsyncClient, url: str, members: Mapping[str, Any]
) -> Mapping[str, Any]:
    try:
        answer = await client.post(url, json=members)
        found: Any = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise KvLoadError(f"the other engine cannot be asked: {type(error).__name__}") from error
    if answer.status_code != 200 or not isinstance(found, dict):
        raise KvLoadError("the other engine keeps no such KV")
    return found
