"""Clients for what is asked by plain HTTP on this machine: an engine, a gateway, a dashboard.

To read the certificates of every authority takes 40 ms of CPU for each client. These trust nobody,
so that an `https` address is refused, and know no proxy.
"""

import functools
import ssl
from typing import Any

import httpx


@functools.cache
def _trust_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def make_plain_client(**how: Any) -> httpx.AsyncClient:
    """Return a client with these options of httpx, for addresses that begin with `http:`."""
    return httpx.AsyncClient(verify=_trust_nobody(), trust_env=False, **how)
