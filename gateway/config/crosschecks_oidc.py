"""Checks of the section `oidc`: what an issuer needs to admit the right people."""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from gateway.config.faults import ConfigFault
from gateway.config.schema import Settings


def check_oidc(settings: Settings) -> Iterator[ConfigFault]:
    said = settings.oidc
    if said.issuer is None:
        for name in sorted(said.model_dump(exclude_defaults=True)):
            yield ConfigFault(("oidc", name), "has no effect without `oidc.issuer`")
        return
    if not said.audiences:
        words = "is required: without it a token for any other program would be accepted"
        yield ConfigFault(("oidc", "audiences"), words)
    if settings.dashboard.access_file is None:
        words = "`dashboard.access_file` is required: it states the permissions of people"
        yield ConfigFault(("oidc", "issuer"), words)
    if _in_clear(said.issuer):
        words = (
            f"`{said.issuer}` is not https: anybody on the network path could sign in as "
            "another person"
        )
        yield ConfigFault(("oidc", "issuer"), words)
    for index, text in enumerate(said.networks):
        try:
            ip_network(text)
        except ValueError as error:
            words = f"{error}; write it like 10.0.0.0/8 or fd00::/8"
            yield ConfigFault(("oidc", "networks", index), words)


def _in_clear(url: str) -> bool:
    """Return whether a URL uses plain HTTP beyond this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        here = False
    return parts.scheme != "https" and not here
