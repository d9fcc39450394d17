"""HTTP client of telemetry for an engine's first contact: its limit and its step times.

A host without engines imports neither this module nor httpx, a twentieth of a start's imports.
"""

import ssl
from collections.abc import Mapping

import httpx

from backends.address_policy import INSIDE
from backends.pinned import PinnedTransport

TIMEOUT_S = 5.0


def make_engine_client(
    headers: Mapping[str, str], tls: ssl.SSLContext | None = None
) -> httpx.AsyncClient:
    """Return a client with the engine's own key; without `tls` it trusts no authority."""
    # Loading all CA certificates takes 40 ms of CPU.
    tls = tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(
        timeout=httpx.Timeout(TIMEOUT_S),
        transport=PinnedTransport(INSIDE, tls=tls),
        headers=headers,
    )
