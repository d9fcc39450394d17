"""Checks of the network to providers and engines: DNS, connection, certificate.

No key is sent.
"""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from backends.providers import BASE_URLS, MESSAGES_URLS
from gateway.config.settings import Settings
from gateway.diagnosis.observation import DoctorFinding, failed, fine, noted

TIMEOUT_S = 5.0


class NetworkPlace(NamedTuple):
    """Server that receives requests; `name` is its name in the configuration."""

    name: str
    url: str


def places_of(settings: Settings, environ: Mapping[str, str]) -> Iterator[NetworkPlace]:
    """Yield all servers in the configuration, including known addresses of providers."""
    for name, provider in settings.providers.items():
        url = provider.base_url or MESSAGES_URLS.get(name) or BASE_URLS.get(name)
        if url is not None and not provider.simulated:
            yield NetworkPlace(f"providers.{name}", url)
    for name, pool in settings.pools.items():
        for number, url in enumerate(pool.engine.endpoints):
            yield NetworkPlace(f"pools.{name} engine {number}", url)
    endpoint = settings.opentelemetry.endpoint
    if endpoint is not None:
        yield NetworkPlace("opentelemetry.endpoint", endpoint)
    for section, place in ((settings.alerts, "alerts"), (settings.events, "events")):
        url = environ.get(section.webhook_env or "", "").strip()
        if url:
            yield NetworkPlace(f"{place}.webhook_env", url)


async def look_at_network(places: Sequence[NetworkPlace]) -> list[DoctorFinding]:
    """Connect to each server once, in parallel, and disconnect."""
    return list(await asyncio.gather(*map(_look, places)))


async def _look(place: NetworkPlace) -> DoctorFinding:
    try:
        return await _connect(place)
    except ValueError:  # its message may contain a part of the address, which may be secret
        return failed(place.name, "its address cannot be read", "mend the address")


async def _connect(place: NetworkPlace) -> DoctorFinding:
    """Connect to a server. Raises `ValueError` for an invalid address."""
    at = urlsplit(place.url)
    host, port = at.hostname or "", at.port or (443 if at.scheme == "https" else 80)
    shown = f"{at.scheme}://{host}:{port}"  # a path may hold a secret
    proxy = getproxies().get(at.scheme)
    if proxy and not proxy_bypass(host):
        return noted(place.name, f"{shown} is reached through a proxy, which is not asked")
    began_s = time.monotonic()
    secure = ssl.create_default_context() if at.scheme == "https" else None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port, ssl=secure)
    except socket.gaierror:
        fix = "mend the address, or the machine's name server"
        return failed(place.name, f"{shown}: the name `{host}` is not known", fix)
    except ssl.SSLCertVerificationError as error:
        fix = "add the authority that signed it (`SSL_CERT_FILE`), or mend the address"
        reason = getattr(error, "verify_message", None) or "its certificate is refused"
        return failed(place.name, f"{shown}: {reason}", fix)
    except TimeoutError:
        fix = "open the way (firewall, security group, NetworkPolicy), or mend the address"
        return failed(place.name, f"{shown}: no connection within {TIMEOUT_S:g} s", fix)
    except OSError as error:
        words = os.strerror(error.errno) if error.errno else str(error)
        return failed(place.name, f"{shown}: {words}", "start it, or mend the address")
    took_ms = 1000 * (time.monotonic() - began_s)
    writer.close()
    return fine(place.name, f"{shown} answers in {took_ms:.0f} ms")
