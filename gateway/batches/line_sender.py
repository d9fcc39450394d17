"""Sender of one try of one line to this host's workers, with the batch's key."""

from collections.abc import Callable

import httpx
import msgspec

from backends.sending import Transmission
from gateway.batches.authority import LineTicket, TicketAuthority
from gateway.batches.line_endpoint import PREFIX
from gateway.batches.line_outcome import PASSING, ConnectionLost, LineAnswer
from gateway.batches.provider_line_planner import ProviderLine
from gateway.batches.shapes import IGNORED
from gateway.errors import ErrorFault
from gateway.request.request_tags import HEADER
from ledger.batches.lines import LineClaim

MARGIN_S = 30.0  # added to the gateway's own timeout
CONNECT_S = 5.0
NOT_ONWARD = 409
_US = 1_000_000
# Errors before a connection exists.
UNMADE = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class SpillRefused(Exception):
    """Error: no provider's batch takes the line."""


class LineSender:
    """HTTP client for lines; `url` is the address of this host's workers."""

    def __init__(
        self,
        url: str,
        authority: TicketAuthority,
        *,
        total_s: float,
        at_once: int,
        now_us: Callable[[], int],
    ) -> None:
        self._authority = authority
        self._now_us = now_us
        self._life_us = round((total_s + MARGIN_S) * _US)
        self._client = httpx.AsyncClient(
            base_url=url,
            timeout=httpx.Timeout(total_s + MARGIN_S, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once),
            trust_env=False,
        )

    async def send(self, claim: LineClaim, *, spill: bool) -> LineAnswer | ConnectionLost:
        return await self._post_line(claim, self._ticket(claim, spill=spill))

    async def plan_at_provider(self, claim: LineClaim) -> ProviderLine | None:
        """Return the line for a provider's batch; `None` while it cannot be planned.

        Raises `SpillRefused` if no provider's batch takes it, or any target would reject the
        request.
        """
        found = await self._post_line(claim, self._ticket(claim, onward=True))
        if isinstance(found, ConnectionLost) or found.status in PASSING - {NOT_ONWARD}:
            return None
        if found.status != 200:
            raise SpillRefused
        return msgspec.msgpack.decode(found.body, type=ProviderLine)

    def _ticket(self, claim: LineClaim, *, spill: bool = False, onward: bool = False) -> LineTicket:
        return LineTicket(
            key_id=claim.key_id,
            batch_id=claim.batch_id,
            request_id=claim.request_id,
            expires_us=self._now_us() + self._life_us,
            spill=spill,
            onward=onward,
        )

    async def _post_line(self, claim: LineClaim, ticket: LineTicket) -> LineAnswer | ConnectionLost:
        headers = {
            b"authorization": f"Bearer {self._authority.sign(ticket)}".encode(),
            b"content-type": b"application/json",
        }
        if claim.tags is not None:
            headers[HEADER.encode()] = claim.tags.encode()
        transmission = Transmission()
        try:
            answer = await self._client.post(
                PREFIX + claim.endpoint,
                content=claim.body,
                headers=headers,
                extensions={"trace": transmission.trace},
            )
        except UNMADE:
            return ConnectionLost(sent=False)
        except httpx.HTTPError:
            return ConnectionLost(sent=transmission.possible)
        told, fault = (answer.headers.get(name) for name in ("x-should-retry", "x-breakeven-fault"))
        if fault == ErrorFault.UPSTREAM:
            told = None  # a batch can wait until the cause is fixed, unlike a client
        return LineAnswer(
            status=answer.status_code,
            request_id=answer.headers.get("x-request-id", claim.request_id),
            body=answer.content,
            retry=None if told is None else told == "true",
            ignored=answer.headers.get(IGNORED),
            fault=fault,
        )

    async def aclose(self) -> None:
        await self._client.aclose()
