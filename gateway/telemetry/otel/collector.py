"""HTTP session for a collector: only the status counts, and little of the body is read.

The standard exporter would read the whole body, whatever its size, and take a redirect for success.
A wrong address (a stream, a page, a forwarding proxy) must neither use memory nor go unreported.
Defaults of `requests` are restricted: a password in `~/.netrc` is never sent, and would replace the
configured header; a proxy of the environment is used for remote addresses only.
"""

from typing import Any
from urllib.parse import urlsplit

import requests

from backends.address_policy import LOCALHOST, parse_address

READS = 4  # reads of a valid answer: its body, and its end
LARGEST = 16 * 1024  # bytes of one


class CollectorSession(requests.Session):
    """Session for OpenTelemetry's exporters. Raises `TooManyRedirects` for any redirect."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = _as_configured

    def merge_environment_settings(self, url: str, *how: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().merge_environment_settings(url, *how)
        return found | {"proxies": {}} if _is_here(url) else found

    def send(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        answer = super().send(request, **(how | {"stream": True}))
        if not _has_ended(answer):
            answer.close()  # its connection is not used again
        answer.raw = None  # no content is available
        if answer.is_redirect:
            raise requests.TooManyRedirects("it sends on to elsewhere, which is not followed")
        return answer


def _as_configured(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Return the request unchanged: without an auth function, `~/.netrc` would be read."""
    return request


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    address = parse_address(host)
    return host == LOCALHOST if address is None else address.is_loopback


def _has_ended(answer: requests.Response) -> bool:
    """Return whether the body ended within a few reads; each read has the timeout of a send."""
    try:
        return any(not answer.raw.read1(LARGEST) for _ in range(READS))
    except Exception:  # noqa: BLE001 - of many kinds; its status has come, and counts
        return False
