"""A gateway elsewhere, asked with a key: the same verbs, done there."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from gateway.admin.verb import PREFIX, Refused, Verb

GATEWAY, API_KEY = "BREAKEVEN_GATEWAY", "BREAKEVEN_API_KEY"
TIMEOUT_S = 60.0
G = TypeVar("G", bound=msgspec.Struct)


class Remote:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def do(self, verb: Verb[G], given: G) -> dict[str, Any]:
        """What the gateway tells. Raises `Refused` with its words, or why it could not be asked."""
        said = {
            name: value for name, value in msgspec.to_builtins(given).items() if value is not None
        }
        sent: dict[str, Any] = {"params": said} if verb.in_query else {"json": said}
        try:
            answer = self._client.request(verb.method, PREFIX + verb.path, **sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise Refused(f"{self._client.base_url} cannot be asked: {why}") from error
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            document: dict[str, Any] = answer.json()
            if answer.is_success:
                return document
            words = str(document["error"]["message"])
        except (ValueError, KeyError, TypeError):
            url = self._client.base_url
            raise Refused(f"{url} answered {answer.status_code}, as no gateway does") from None
        raise Refused(words.removesuffix("."))


def in_clear(url: str) -> bool:
    """Whether anybody on the way there reads the key: plain HTTP, to another host."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname in (None, "localhost"):
        return False
    try:
        return not ip_address(str(parts.hostname)).is_loopback
    except ValueError:
        return True


@contextmanager
def remote(url: str, environ: Mapping[str, str]) -> Iterator[Remote]:
    """`url`: with or without `/v1`. Raises `Refused` without a key or for what is no address."""
    key = environ.get(API_KEY, "")
    if not key:
        raise Refused(f"set {API_KEY} to a key that {url} knows")
    base = url.rstrip("/").removesuffix("/v1")
    if not base.startswith(("http://", "https://")):
        raise Refused(f"`{url}` is no address: it begins with http:// or https://")
    headers = {"authorization": f"Bearer {key}"}
    try:
        client = httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT_S)
    except (httpx.InvalidURL, ValueError) as error:
        raise Refused(f"`{url}` is no address: {error}") from error
    with client:
        yield Remote(client)
