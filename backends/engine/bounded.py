"""HTTP client for untrusted servers: one response, limited in bytes and in time.

A command may be given the address of a wrong port, a login page, or a hostile server. A response
without end must not fill this machine's memory, and the error text must say what is wrong.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

if TYPE_CHECKING:  # importers of the limits alone need no httpx
    import httpx

PAGE_BYTES = 16 * 2**20  # vLLM's metrics are 80 kB; every rank and adapter adds lines
PAGE_S = 10.0


class NoPage(Exception):
    """A page could not be fetched; the text gives the reason."""


class NobodyThere(NoPage):
    """No server answered: the address is wrong, or the server is gone."""


class FetchedPage(NamedTuple):
    status: int
    location: str | None
    body: bytes

    def decode_json(self) -> Any:
        """Return the body decoded as JSON. Raises `NoPage` when it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NoPage(
                f"it returned {self.status} with a body that is not JSON{self._on()}"
            ) from None

    def _on(self) -> str:
        to = self.location
        return f" and sends on to {to!r}: give the address that answers itself" if to else ""


async def fetch_page(
    client: "httpx.AsyncClient",
    url: str,
    *,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    limit_bytes: int = PAGE_BYTES,
    seconds: float | None = PAGE_S,
) -> FetchedPage:
    """Fetch a page by GET, or by POST if `body` is given. Redirects are not followed.

    Raises `NoPage` when the response fails, is too large or too late; its subclass `NobodyThere`
    when no connection was made.
    """
    import httpx  # noqa: PLC0415  (importers of the limits alone need no httpx)

    parts, size = [], 0
    method = "GET" if body is None else "POST"
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream(method, url, json=body, headers=headers) as answer,
        ):
            async for part in answer.aiter_bytes():
                parts.append(part)
                size += len(part)
                if size > limit_bytes:
                    raise NoPage(f"its response is larger than {limit_bytes:,} bytes")
    except TimeoutError:
        raise NoPage(f"it has not answered within {seconds:g} s") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise NobodyThere(f"nothing answers there: {error}".removesuffix(": ")) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise NobodyThere(f"not an address such as http://127.0.0.1:8000/v1: {error}") from error
    except httpx.HTTPError as error:
        raise NoPage(f"{type(error).__name__}: {error}".removesuffix(": ")) from error
    return FetchedPage(answer.status_code, answer.headers.get("location"), b"".join(parts))


def models_of(page: FetchedPage) -> list[str]:
    """Return the names in a list of models. Raises `NoPage` when the page is not such a list."""
    document = page.decode_json()
    if page.status != 200:
        raise NoPage(f"it returned {page.status}")
    rows = document.get("data") if isinstance(document, dict) else None
    found = [row.get("id") for row in rows if isinstance(row, dict)] if _is_list(rows) else []
    names = [name for name in found if isinstance(name, str)]
    if not names or len(names) < len(found):
        raise NoPage("it lists no models")
    for name in names:
        if not name.isprintable():
            raise NoPage(f"its model name {name!r} has unprintable characters")
    return names


def _is_list(rows: Any) -> TypeGuard[list[Any]]:
    return isinstance(rows, list)
