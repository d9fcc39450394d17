"""HTTP clients for services on this machine: an engine, a gateway, a dashboard.

Loading all certificate authorities takes 40 ms of CPU per client. These clients load none, so an
`https` address fails, and use no proxy.
"""

import functools
import ssl
from typing import Any

import httpx


@functools.cache
def _trust_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def make_plain_client(**how: Any) -> httpx.AsyncClient:
    """Return a client with these httpx options, for `http:` addresses only."""
    return httpx.AsyncClient(verify=_trust_nobody(), trust_env=False, **how)
