"""Requests to a collector: the status of an answer counts, and little of it is read.

The exporter would read an answer to its end, whatever its size, and take a redirect for success. A
wrong address (a stream, a page, a proxy that sends on) must cost neither memory nor go unsaid.

What `requests` finds by itself is cut down: a password in `~/.netrc` is never sent, and would stand
in place of the configured header; a proxy of the environment is asked for what is elsewhere alone.
"""

from typing import Any
from urllib.parse import urlsplit

import requests

from backends.address_policy import LOCALHOST, parse_address

READS = 4  # that a rightful answer takes: its bytes, and what ends them
LARGEST = 16 * 1024  # bytes of one


class CollectorSession(requests.Session):
    """A session for OpenTelemetry's exporters. Raises `TooManyRedirects` for a single one."""

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
        answer.raw = None  # there is no content, also for who asks for it
        if answer.is_redirect:
            raise requests.TooManyRedirects("it sends on to elsewhere, which is not followed")
        return answer


def _as_configured(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An auth of one's own: without any, `~/.netrc` is looked through for one."""
    return request


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    address = parse_address(host)
    return host == LOCALHOST if address is None else address.is_loopback


def _has_ended(answer: requests.Response) -> bool:
    """Whether the answer is over within what is read of it; each read waits as long as a send."""
    try:
        return any(not answer.raw.read1(LARGEST) for _ in range(READS))
    except Exception:  # noqa: BLE001 - of many kinds; its status has come, and counts
        return False
