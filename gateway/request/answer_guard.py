"""Filter that withholds an answer until guardrails have read it and let it pass.

A stream is held until its end, because sent bytes cannot be taken back. Only an answer in one piece
can be rewritten. If a guardrail fails, or would rewrite a stream, the answer is withheld. The
target was paid, so the ledger row does not change.
"""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any, Final

import msgspec

from gateway.content.body_texts import STRUCTURE, BodyTexts, TextRewriter, digits_of
from gateway.content.guardrail_hook import GuardrailHook, HookFailure
from gateway.errors import RequestError, fault_header
from gateway.errors import body as error_body
from gateway.http.connection import Header
from gateway.request.client_response import JSON, ClientResponse, Send
from router.content import ContentAction

Guards = Sequence[tuple[GuardrailHook, Sequence[str]]]
HELD_BYTES: Final = 16 * 1024 * 1024
_DATA: Final = b"data:"
_DONE: Final = b"[DONE]"
_EVENTS: Final = b"text/event-stream"
_FIELDS: Final = (_DATA, b"event:", b"id:", b"retry:", b":")  # beginnings of a stream's lines
_NUMBERS: Final = ("index", "output_index", "content_index", "summary_index")
_UNREADABLE: Final = "The answer is withheld: no guardrail can read it."


class WithheldAnswer(Exception):
    """An answer that must not be sent; the message is the text for the client."""


def guard_answer(
    reply: ClientResponse, guards: Guards, model: str, count: Callable[[str, str, int], None]
) -> None:
    """Withhold the answer of `reply` until the guardrails have read it, and store none of it."""
    reply.forbid_storing()
    if reply.cache_use is not None:
        reply.cache_use.forbid()
    reply.wrap_send(lambda send: AnswerGuard(send, guards, reply.request_id, model, count).send)


class AnswerGuard:
    """A filter between a response and its client; `guards` are the hooks with their actions."""

    def __init__(
        self,
        send: Send,
        guards: Guards,
        request_id: str,
        model: str,
        count: Callable[[str, str, int], None],
    ) -> None:
        self._send = send
        self._guards = guards
        self._request_id, self._model = request_id, model
        self._count = count
        self._start: MutableMapping[str, Any] | None = None
        self._parts: list[bytes] = []
        self._size = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Collect one message of the answer; after the last, send the whole answer or an error."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        body = message.get("body", b"")
        self._size += len(body)
        if self._size <= HELD_BYTES:
            self._parts.append(body)
        if not message.get("more_body", False):
            await self._release()

    async def _release(self) -> None:
        assert self._start is not None  # a head comes first
        start, data = self._start, b"".join(self._parts)
        if start["status"] < 400:
            try:
                data = await self._judge(data, is_stream=_is_stream(start["headers"], data))
            except WithheldAnswer as error:
                await self._send_error(str(error))
                return
        headers = [pair for pair in start["headers"] if pair[0] != b"content-length"]
        headers.append((b"content-length", str(len(data)).encode()))
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def _judge(self, data: bytes, *, is_stream: bool) -> bytes:
        if self._size > HELD_BYTES:
            raise WithheldAnswer("The answer is too large for a guardrail. Lower `max_tokens`.")
        document = None if is_stream or not data else _document(data)
        streamed = _stream_texts(data) if is_stream and data else [""]
        for hook, actions in self._guards:
            said = dict(enumerate(streamed)) if document is None else _said(document)
            texts = list(said.values())
            try:
                answer = await hook.ask(texts, self._request_id, self._model)
            except HookFailure as error:
                self._count(hook.name, "failed", 1)
                words = f"The answer is withheld: the guardrail `{hook.name}` did not tell."
                raise WithheldAnswer(words) from error
            if not answer.count:
                continue
            rewritten = answer.texts is not None and answer.texts != texts
            self._count(hook.name, actions[0], answer.count)
            if ContentAction.REFUSE in actions or (
                ContentAction.MASK in actions and (document is None or not rewritten)
            ):
                words = f"The answer is withheld: the guardrail `{hook.name}` refuses it."
                raise WithheldAnswer(words)
            if document is not None and answer.texts is not None and rewritten:
                changed = dict(zip(said, answer.texts, strict=True))
                document = TextRewriter(changed).rewrite(document)
                data = msgspec.json.encode(document)
        return data

    async def _send_error(self, words: str) -> None:
        error = RequestError("content_refused", words, retry=False)
        data = error_body(error)
        headers = [
            JSON, (b"x-request-id", self._request_id.encode()), fault_header(error.fault),
            (b"content-length", str(len(data)).encode()),
        ]  # fmt: skip
        start = {"type": "http.response.start", "status": error.row.status, "headers": headers}
        await self._send(start)
        await self._send({"type": "http.response.body", "body": data, "more_body": False})


def _is_stream(headers: Iterable[Header], data: bytes) -> bool:
    """Return whether the answer is an event stream, by content type, else by its first bytes.

    The type comes first, because the text of any answer may look like events.
    """
    media = next((value for name, value in headers if name.lower() == b"content-type"), None)
    if media is None:
        return data.lstrip().startswith(_FIELDS)
    return media.strip().lower().startswith(_EVENTS)


def _document(data: bytes) -> Any:
    try:
        document: Any = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WithheldAnswer(_UNREADABLE) from error
    return document


def _said(document: Any) -> dict[int, str]:
    """Return the texts of a document by position; names of members are not included."""
    body = BodyTexts()
    body.add(document)
    return {place: body.texts[place] for place in body.content}


def _stream_texts(data: bytes) -> list[str]:
    """Return the texts of a stream's events, with the pieces of one position joined."""
    said: dict[tuple[Any, ...], list[str]] = {}
    for line in data.splitlines():
        if line and not line.startswith(_FIELDS):
            raise WithheldAnswer(_UNREADABLE)
        event = line[len(_DATA) :].strip() if line.startswith(_DATA) else b""
        if event and event != _DONE:
            _add_texts(said, _document(event), ())
    return ["".join(parts) for parts in said.values()] or [""]


def _add_texts(said: dict[tuple[Any, ...], list[str]], value: Any, place: tuple[Any, ...]) -> None:
    """Add the texts of an event under their positions; index members keep choices apart."""
    if isinstance(value, str):
        said.setdefault(place, []).append(value)
    elif isinstance(value, dict):
        numbers = tuple(value.get(name) for name in _NUMBERS if type(value.get(name)) is int)
        for name, inner in value.items():
            if name not in STRUCTURE or isinstance(inner, dict | list):
                _add_texts(said, inner, (*place, *numbers, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _add_texts(said, inner, (*place, number))
    elif (digits := digits_of(value)) is not None:
        known = said.setdefault(place, [])
        if known[-1:] != [digits]:  # the same timestamp in each event counts once
            known.append(digits)
