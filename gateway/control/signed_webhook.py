"""JSON posts to a configured address, signed if there is a secret.

`x-breakeven-signature: t=SECONDS,v1=HEX` is the HMAC-SHA256 of `SECONDS.BODY`. Any 2xx is success.
"""

import asyncio
import hmac
import json
import logging
from typing import TYPE_CHECKING, Any

from backends.address_policy import INSIDE
from backends.secret import Secret
from gateway.clock import Clock

if TYPE_CHECKING:  # imported where something is told
    import httpx

TIMEOUT_S = 10.0

log = logging.getLogger("breakeven.webhooks")


class SignedWebhook:
    """One webhook address. The log uses `name`, because the address may hold a secret."""

    def __init__(self, name: str, address: Secret, secret: Secret | None, clock: Clock) -> None:
        self._name, self._address, self._secret, self._clock = name, address, secret, clock

    async def post(self, client: "httpx.AsyncClient", message_id: str, message: Any) -> bool:
        """Post a message. Return whether the status was 2xx; the log has the reason if not."""
        import httpx  # noqa: PLC0415  (a thirtieth of a start, where nothing is told)

        body = json.dumps(message).encode()
        headers = {"content-type": "application/json"}
        if self._secret is not None:
            at_s, secret = self._clock.wall_us() // 1_000_000, self._secret.reveal().encode()
            headers["x-breakeven-signature"] = signature(secret, body, at_s)
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                client.stream(
                    "POST", self._address.reveal(), content=body, headers=headers
                ) as answer,
            ):
                pass  # only the status counts: the body is not read
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
            log.warning(
                "%s: delivery failed message=%s error=%s",
                self._name,
                message_id,
                type(error).__name__,
            )
            return False
        if not answer.is_success:
            log.warning(
                "%s: delivery failed message=%s status=%d",
                self._name,
                message_id,
                answer.status_code,
            )
        return answer.is_success


def webhook_client() -> "httpx.AsyncClient":
    """Return a client that follows no redirects and connects to checked addresses only."""
    import httpx  # noqa: PLC0415  (as above)

    from backends.pinned import PinnedTransport  # noqa: PLC0415  (as above)

    return httpx.AsyncClient(timeout=TIMEOUT_S, transport=PinnedTransport(INSIDE))


def signature(secret: bytes, body: bytes, at_s: int) -> str:
    signed = hmac.new(secret, f"{at_s}.".encode() + body, "sha256").hexdigest()
    return f"t={at_s},v1={signed}"
