"""Client of a provider's files and batches in OpenAI's API: the seven calls of a runner.

A call returns an answer, or raises `ProviderRefused` (nothing was done, a retry cannot help) or
`ProviderUnavailable` (unknown): the caller then checks the state before it retries.
"""

import re
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from backends.address_policy import AddressPolicy
from backends.pinned import PinnedTransport
from backends.providers import PROVIDER_KINDS
from backends.secret import Secret
from backends.sending import EXTENSION, Transmission
from gateway.batches.batch_spill_policy import batch_providers
from gateway.config.credentials import provider_keys
from gateway.config.settings import Settings
from gateway.errors import ConfigError
from gateway.runtime import Runtime

MARK = "breakeven_batch"  # metadata key that identifies our batches
LISTED = 100
PAGES = 50  # maximum pages searched of a list
ANSWER_LIMIT_BYTES = 64 * 1024 * 1024  # maximum of one line of an output file
OBJECT_LIMIT_BYTES = 8 * 1024 * 1024  # maximum of a JSON answer
_AGAIN = frozenset((408, 409, 425, 429))
_ID = re.compile(r"[\w.~:@!$&'()*+,;=/-]{1,512}", re.ASCII)  # needs no escaping in a path
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
UPLOAD_TIMEOUT = httpx.Timeout(300.0, connect=10.0)


class ProviderUnavailable(Exception):
    """Error: the call's effect is unknown, or the provider is unavailable."""


class ProviderRefused(Exception):
    """Error: the provider refused the call; `status` is its HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"refused with {status}")
        self.status = status


class ProviderBusy(Exception):
    """Error: the provider is busy and did nothing."""


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """State of a provider's batch. `codes` are the codes of its `errors` if it failed."""

    id: str
    status: str
    output_file_id: str | None
    error_file_id: str | None
    codes: tuple[str, ...] = ()
    completed: int = 0  # requests completed, as reported


class ProviderBatchClient:
    """Client of one provider. Its key is only in the client's headers and is never shown."""

    def __init__(
        self,
        base_url: str,
        api_key: Secret | None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"user-agent": "breakeven", "accept-encoding": "identity"}
            | ({} if api_key is None else {"authorization": f"Bearer {api_key.reveal()}"}),
            timeout=TIMEOUT,
            transport=transport,
            verify=ssl.create_default_context() if base_url.startswith("https:") else False,
            trust_env=False,
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def upload(self, name: str, text: bytes) -> str:
        """Upload a file; return its id at the provider."""
        found = await self._send_request(
            "POST", "/files", files={"file": (name, text, "application/jsonl")},
            data={"purpose": "batch"}, timeout=UPLOAD_TIMEOUT,
        )  # fmt: skip
        return _id(found, "id")

    async def find_file(self, name: str, since_s: int) -> str | None:
        """Return the id of a file with this name, created at `since_s` or later."""
        async for entry in self._list_entries("/files", {"purpose": "batch"}, since_s):
            if entry.get("filename") == name:
                return _id(entry, "id")
        return None

    async def create(self, file_id: str, endpoint: str, mark: str) -> ProviderBatch:
        asked = {
            "input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h",
            "metadata": {MARK: mark},
        }  # fmt: skip
        return _batch(await self._send_request("POST", "/batches", json=asked))

    async def find_batch(self, mark: str, since_s: int) -> ProviderBatch | None:
        """Return the batch with this mark in its metadata, created at `since_s` or later."""
        async for entry in self._list_entries("/batches", {}, since_s):
            marks = entry.get("metadata")
            if isinstance(marks, Mapping) and marks.get(MARK) == mark:
                return _batch(entry)
        return None

    async def batch(self, batch_id: str) -> ProviderBatch:
        return _batch(await self._send_request("GET", f"/batches/{batch_id}"))

    async def cancel(self, batch_id: str) -> ProviderBatch:
        return _batch(await self._send_request("POST", f"/batches/{batch_id}/cancel"))

    async def delete(self, file_id: str) -> None:
        await self._send_request("DELETE", f"/files/{file_id}")

    async def lines(self, file_id: str) -> AsyncIterator[bytes]:
        """Yield a file's lines. Raises `ProviderUnavailable` if the download breaks off."""
        try:
            async with self._client.stream("GET", f"/files/{file_id}/content") as answer:
                if answer.status_code != 200:
                    raise _refusal(answer.status_code)
                _check_plain(answer)
                held: list[bytes] = []
                size = 0
                async for piece in answer.aiter_bytes():
                    *whole, rest = piece.split(b"\n")
                    if whole:
                        whole[0], held, size = b"".join((*held, whole[0])), [], 0
                    for line in whole:
                        if line.strip():
                            yield line
                    held.append(rest)
                    size += len(rest)
                    if size > ANSWER_LIMIT_BYTES:
                        raise ProviderUnavailable("a line of an output file is too long")
                if (last := b"".join(held)).strip():
                    yield last
        except httpx.HTTPError as error:
            raise ProviderUnavailable(type(error).__name__) from None

    async def _list_entries(
        self, path: str, query: dict[str, str], since_s: int
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the entries of a list, newest first, down to `since_s`."""
        after: dict[str, str] = {}
        for _ in range(PAGES):
            asked = {**query, "limit": str(LISTED), **after}
            page = await self._send_request("GET", path, params=asked)
            found = [datum for datum in page.get("data") or () if isinstance(datum, dict)]
            for finding in found:
                yield finding
            last = found[-1] if found else {}
            made_s = last.get("created_at")
            older = isinstance(made_s, int) and made_s < since_s
            if not page.get("has_more") or not found or older:
                return
            after = {"after": _text(last, "id")}
        raise ProviderUnavailable(f"{path} has too many entries to be searched")

    async def _send_request(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        transmission = Transmission()
        marked = {EXTENSION: transmission}
        try:
            async with self._client.stream(method, path, extensions=marked, **given) as answer:
                if answer.status_code != 200:
                    raise _refusal(answer.status_code)
                content = await _read_answer(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            unmade = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            if unmade or not transmission.possible:
                raise ProviderBusy(type(error).__name__) from None
            raise ProviderUnavailable(type(error).__name__) from None
        try:
            found = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ProviderUnavailable("an answer that is not a JSON object") from error
        return found


async def _read_answer(answer: httpx.Response) -> bytes:
    """Read a JSON answer up to a limit, because a compressed body may expand to any size."""
    _check_plain(answer)
    content = b""
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > OBJECT_LIMIT_BYTES:
            raise ProviderUnavailable("an answer that is too long")
    return content


def _check_plain(answer: httpx.Response) -> None:
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProviderUnavailable("a compressed answer")


def _refusal(status: int) -> Exception:
    if status == 429:
        return ProviderBusy("429")
    return (
        ProviderRefused(status)
        if 400 <= status < 500 and status not in _AGAIN
        else ProviderUnavailable(str(status))
    )


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise ProviderUnavailable(f"an answer without `{name}`")
    return value


def _id(found: Mapping[str, Any], name: str) -> str:
    """Return a valid id from the answer. Raises `ProviderUnavailable` for any other value."""
    value = _text(found, name)
    if _ID.fullmatch(value) is None:
        raise ProviderUnavailable(f"an answer whose `{name}` is not an id")
    return value


def _batch(found: Mapping[str, Any]) -> ProviderBatch:
    errors = found.get("errors")
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    codes = [entry.get("code") for entry in listed or () if isinstance(entry, Mapping)]
    return ProviderBatch(
        _id(found, "id"),
        _text(found, "status"),
        _id(found, "output_file_id") if found.get("output_file_id") else None,
        _id(found, "error_file_id") if found.get("error_file_id") else None,
        tuple(str(code) for code in codes if code),
        _completed(found.get("request_counts")),
    )


def _completed(counts: Any) -> int:
    """Return the number of completed requests, 0 if not reported."""
    completed = counts.get("completed") if isinstance(counts, Mapping) else None
    return completed if type(completed) is int and completed > 0 else 0


@dataclass(frozen=True, slots=True)
class BatchProviders:
    """Provider that takes batches; `secrets` are removed from what clients read."""

    remote: ProviderBatchClient
    secrets: tuple[Secret, ...] = ()


def make_batch_providers(
    settings: Settings, runtime: Runtime, environ: Mapping[str, str]
) -> dict[str, BatchProviders]:
    """Return the providers that take batches, by name.

    Raises `ConfigError` for one without an address or a key.
    """
    found: dict[str, BatchProviders] = {}
    taking = {name: settings.providers[name] for name in sorted(batch_providers(settings))}
    for name, key in provider_keys(taking, environ).items():
        provider = taking[name]
        address = runtime.providers[name] or PROVIDER_KINDS[provider.kind].addresses.get(name)
        if address is None:
            raise ConfigError([f"providers.{name}.base_url: needed, `{name}` is not a known name"])
        transport = PinnedTransport(AddressPolicy(provider.networks))
        found[name] = BatchProviders(
            ProviderBatchClient(address, key, transport), () if key is None else (key,)
        )
    return found
