"""Headers that the inference paths read, collected in one pass."""

from collections.abc import Iterable
from dataclasses import dataclass, field

BEARER = b"bearer "
JSON = b"application/json"
SESSION_LIMIT = 256  # characters
_SESSIONS = (b"x-session-id", b"x-breakeven-session")
_IDEMPOTENCY = b"idempotency-key"
_TAGS = b"x-breakeven-tags"
_ASKED_OF_API = frozenset((b"anthropic-beta", b"anthropic-version"))
CACHE_CONTROL, CACHE_ASKED, PRAGMA = b"cache-control", b"x-breakeven-cache", b"pragma"
_CACHING = frozenset((CACHE_CONTROL, CACHE_ASKED, PRAGMA))
_MARKS = frozenset((*_SESSIONS, _IDEMPOTENCY, _TAGS, *_ASKED_OF_API, *_CACHING))
_ENCODING = b"content-encoding"
KEYS = frozenset((b"x-api-key", b"api-key"))  # Anthropic's and Azure's
_READ = frozenset((b"authorization", b"content-length", b"content-type", _ENCODING, *_MARKS, *KEYS))


@dataclass(slots=True)
class RequestHead:
    """Header fields of a request that the inference paths read.

    `token` is the first key; `length` the body's bytes, 0 if not stated; `media` the content type
    if not JSON; `once` the first `Idempotency-Key`; `encoding` the compression. `asked_of_api`
    holds Anthropic's version and beta headers. `caching` holds the headers that control the
    response cache, `None` without any. `tags` are the request's tags.
    """

    token: str | None = field(default=None, repr=False)
    session: str | None = None
    length: int = 0
    media: str | None = None
    once: bytes | None = None
    encoding: str | None = None
    asked_of_api: dict[str, str] = field(default_factory=dict)
    caching: list[tuple[bytes, bytes]] | None = None
    tags: str | None = None


def read_fields(headers: Iterable[tuple[bytes, bytes]]) -> RequestHead:
    found = RequestHead()
    for name, value in headers:
        if name not in _READ:
            continue
        if name == b"content-length":
            found.length = max(found.length, int(value) if value.isdigit() else 0)
        elif name == b"content-type":
            found.media = found.media or _media(value)
        elif name in _MARKS:
            _mark(found, name, value)
        elif name == _ENCODING:
            found.encoding = _compression_of(value) or found.encoding
        elif found.token is None:
            if name in KEYS:
                found.token = value.strip().decode("latin-1")
            elif value[:7].lower() == BEARER:
                found.token = value[7:].strip().decode("latin-1")
    return found


def _media(value: bytes) -> str | None:
    """Return the content type, or `None` for JSON."""
    if value == JSON or b"json" in value.partition(b";")[0].lower():
        return None
    return value.decode("latin-1")


def _compression_of(value: bytes) -> str | None:
    said = value.strip().lower()
    return None if said in (b"", b"identity") else said.decode("latin-1")


def _mark(found: RequestHead, name: bytes, value: bytes) -> None:
    """Store a header that most requests lack."""
    if name == _IDEMPOTENCY:
        found.once = value if found.once is None else found.once
    elif name == _TAGS:
        said = value.decode("utf-8", "replace")
        found.tags = said if found.tags is None else f"{found.tags},{said}"
    elif name in _ASKED_OF_API:
        told, said = name.decode("ascii"), value.decode("latin-1")
        before = found.asked_of_api.get(told)
        found.asked_of_api[told] = said if before is None else f"{before},{said}"
    elif name in _CACHING:
        found.caching = [*(found.caching or ()), (name, value)]
    elif found.session is None:
        found.session = value.decode("latin-1")[:SESSION_LIMIT]
