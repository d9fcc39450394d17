"""A guardrail of the operator's, asked over HTTP: what it gets, what it says, how long it has.

It gets `{"stage", "request_id", "model", "texts"}` and answers `{"found": {KIND: COUNT}}`, with
`texts` where it wants others in their place. Whatever goes wrong is a `HookFailure`: who asked
tightens.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gateway.config.schema_content import ContentHookSection
from gateway.content.presidio_form import presidio_ask, presidio_found

if TYPE_CHECKING:
    import httpx

_CONNECTIONS: Final = 64
_ANSWER_BYTES: Final = 64 * 1024 * 1024
_GROWTH: Final = 2  # a rewritten text may have so many times the bytes, and some more


class HookFailure(Exception):
    """Raised where a guardrail did not say in time, and in form, what it found."""


class HookAnswer(msgspec.Struct, frozen=True):
    """`texts`: in place of those that were sent, as many; None: they stay."""

    found: dict[str, int] = msgspec.field(default_factory=dict)
    texts: list[str] | None = None

    @property
    def count(self) -> int:
        """Return how much was found; a rewriting counts for one."""
        return sum(max(0, count) for count in self.found.values()) or (self.texts is not None)


class GuardrailHook:
    """One address. `name` is a kind of content in policies."""

    def __init__(self, name: str, section: ContentHookSection) -> None:
        self.name = name
        self.is_inside = section.address_residency == "internal_only"
        self.stage: Literal["before", "after"] = section.stage
        self._section = section
        self._client: httpx.AsyncClient | None = None

    async def ask(self, texts: Sequence[str], request_id: str, model: str) -> HookAnswer:
        """Return what it says of the texts. Raises `HookFailure`, at the latest when time is up."""
        section = self._section
        if section.form == "presidio":
            if not texts:
                return HookAnswer()
            asked = presidio_ask(texts, section.language, section.least_score)
        else:
            asked = {"stage": self.stage, "request_id": request_id, "model": model, "texts": texts}
        body = msgspec.json.encode(asked)
        if len(body) > self._section.largest_bytes:
            raise HookFailure("the texts are larger than `largest_bytes`")
        try:
            client = self._client or self._open()  # to load it is no time of the guardrail's
            async with asyncio.timeout(section.timeout_ms / 1e3):
                answer = self._read(await self._post(client, body), texts)
        except HookFailure:
            raise
        except TimeoutError as error:
            raise HookFailure("no answer in time") from error
        except Exception as error:
            raise HookFailure(type(error).__name__) from error
        if answer.texts is not None:
            _check_texts(answer.texts, texts)
        return answer

    def _read(self, answer: bytes, texts: Sequence[str]) -> HookAnswer:
        if self._section.form == "presidio":
            return HookAnswer(presidio_found(answer, texts, self._section.least_score))
        return msgspec.json.decode(answer, type=HookAnswer)

    async def _post(self, client: "httpx.AsyncClient", body: bytes) -> bytes:
        headers = {"content-type": "application/json"}
        async with client.stream("POST", self._section.url, content=body, headers=headers) as told:
            if told.status_code != 200:
                raise HookFailure(f"status {told.status_code}")
            parts, size = [], 0
            async for part in told.aiter_bytes():
                parts.append(part)
                size += len(part)
                if size > _ANSWER_BYTES:
                    raise HookFailure("its answer is too large")
        return b"".join(parts)

    def _open(self) -> "httpx.AsyncClient":
        import httpx  # noqa: PLC0415  (50 ms of a start, for guardrails alone)

        from backends.plain_http import make_plain_client  # noqa: PLC0415  (as above)

        limits = httpx.Limits(max_connections=_CONNECTIONS)
        if self._section.url.startswith("http:"):
            self._client = make_plain_client(limits=limits, timeout=None)
        else:
            patience = httpx.Timeout(self._section.timeout_ms / 1e3)
            self._client = httpx.AsyncClient(limits=limits, timeout=patience, trust_env=False)
        return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _check_texts(given: Sequence[str], asked: Sequence[str]) -> None:
    if len(given) != len(asked):
        raise HookFailure(f"{len(given)} texts for {len(asked)}")
    most = _GROWTH * sum(map(len, asked)) + 4096
    if sum(map(len, given)) > most:
        raise HookFailure("its texts are much longer than those that were sent")
