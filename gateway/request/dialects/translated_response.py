"""Client response in another dialect: takes chat's bytes and sends the dialect's.

The rest of the gateway, from dispatcher to sweeper, sees an ordinary response. An answer that is to
be stored is stored before its last bytes are sent.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from backends.errors import UpstreamBroken
from gateway.errors import RequestError
from gateway.http.body import Members, encode
from gateway.http.connection import Header, RequestConnection
from gateway.kinds.chat import read_chat
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.native_request import NativeRequest
from gateway.request.client_response import (
    CANCELLED,
    CLIENT_GONE,
    STREAM_HEAD,
    ClientResponse,
    Send,
    TargetChoice,
)
from gateway.request.dialects.answer_keeper import AnswerKeeper, ConnectionStorage
from gateway.request.dialects.base import DecodedRequest, Dialect, Purpose
from gateway.request.dialects.native_messages import with_native
from gateway.request.dialects.response_encoder import ResponseEncoder
from gateway.request.dialects.responses_echo import WORDED
from ledger.journals.records import TokenCounts
from router.types import Residency

HELD_LIMIT_BYTES = 64 * 1024 * 1024  # as for an answer in one piece
NOT_STORED = b"x-breakeven-not-stored"


def _with_terms(
    asked: InferenceRequest, heard: DecodedRequest, residency: Residency
) -> InferenceRequest:
    """Return the chat request with what its dialect adds to chat members."""

    def read(less: DecodedRequest) -> InferenceRequest:
        chat = read_chat(less.members, max_n=1, session=asked.session)
        return _with_terms(chat, less, residency)

    def shorten(least_bytes: int) -> InferenceRequest | None:
        less = None if heard.shorten is None else heard.shorten(least_bytes)
        return None if less is None else read(less)

    return replace(
        asked,
        features=asked.features.union(heard.features),
        asked_by=heard.features,
        translated=heard.marked,
        ignored=heard.ignored,
        standard_tier=heard.standard_tier,
        residency=residency,
        instead=None if heard.instead is None else read(heard.instead),
        shorten=None if heard.shorten is None else shorten,
    )


class TranslatedResponse(ClientResponse):
    """A client response in another dialect; `voice` encodes it once the request is decoded.

    `keeper` stores the answer, and `kept` is set once it has. `detached`: the client may leave
    while the answer is generated. `refusal` is the body of an error that ended the request.
    `passes_whole`: some targets may get the request natively, with the headers `asked_in_headers`.
    `storage` is that of a connection, in place of the common one.
    """

    __slots__ = ("_dialect", "_of_chat", "asked_in_headers", "detached", "keeper", "kept",
                 "passes_whole", "ping", "refusal", "storage", "voice")  # fmt: skip

    def __init__(
        self,
        dialect: Dialect,
        send: Send,
        *,
        request_id: str,
        clock: Callable[[], float],
        task: asyncio.Task[Any],
        connection: RequestConnection | None = None,
    ) -> None:
        super().__init__(send, request_id=request_id, clock=clock, task=task, connection=connection)
        self._connection = None  # every part must be translated
        self._dialect = dialect
        self.ping = dialect.ping
        self.passes_whole = False
        self.asked_in_headers: Mapping[str, str] = {}
        self._of_chat = False  # before decoding, errors use the dialect's names
        self.voice: ResponseEncoder | None = None
        self.keeper: AnswerKeeper | None = None
        self.storage: ConnectionStorage | None = None
        self.detached = self.kept = False
        self.refusal: bytes | None = None

    @property
    def purpose(self) -> Purpose:
        """Return the purpose of the path."""
        return self._dialect.purpose

    @property
    def is_remembered(self) -> bool:
        remembers = self.keeper is not None or self.storage is not None
        return remembers or self.purpose != "answer"

    @property
    def continues(self) -> bool:
        """Return whether the request may continue a stored answer."""
        return self._dialect.continues

    def count_document(self, tokens: int) -> dict[str, Any]:
        """Return the answer of a request that counts tokens."""
        return self._dialect.count_document(tokens)

    def detached_copy(self, send: Send, task: asyncio.Task[Any]) -> "TranslatedResponse":
        """Return a response that takes over the answer, while this one reports that it is made."""
        copy = TranslatedResponse(
            self._dialect, send, request_id=self.request_id, clock=self._clock, task=task
        )
        copy.voice, copy.keeper = self.voice, self.keeper
        copy._of_chat = copy.detached = True
        self.voice = self.keeper = None
        return copy

    def end(self, why: str) -> None:
        """End the request, except if only the client of a detached answer left."""
        if why != CLIENT_GONE or not self.detached:
            super().end(why)

    def decode_request(
        self, members: Members, *, max_n: int, session: str | None, wall_s: int
    ) -> InferenceRequest:
        """Return the request as chat; from now on answers are translated."""
        heard, native = self._hear(members)
        self._of_chat = True
        asked = read_chat(heard.members, max_n=max_n, session=session or heard.session)
        if native is not None:
            asked = with_native(asked, replace(native, headers=self.asked_in_headers))
        if self.purpose != "count":
            self.voice = heard.voice(self.request_id, wall_s)
            self.voice.model = asked.model
        if self.keeper is None:
            return _with_terms(asked, heard, Residency.ANY)
        kept: Members = {name: members[name] for name in WORDED if name in members}
        kept |= self.keeper.own_members
        return replace(_with_terms(asked, heard, self.keeper.residency), kept=kept)

    def _hear(self, members: Members) -> tuple[DecodedRequest, NativeRequest | None]:
        """Return the request as chat, or its stand-in, and its native form if it may be sent."""
        if not self.passes_whole:
            return self._dialect.decode_request(members), None
        given = dict(members)  # as it was sent
        try:
            heard = self._dialect.decode_request(members)
        except RequestError as error:
            whole = self._dialect.whole_request(given, error)
            if whole is None:
                raise
            return whole, whole.native
        return heard, self._dialect.native_request(given)

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        await super().start(status, [*headers, *self._dialect.headers(self.request_id)])

    async def body(self, data: bytes, *, more: bool) -> None:
        """Send a part of a stream given in chat events; parts without content are not sent.

        Raises `UpstreamBroken` if an answer exceeds `HELD_LIMIT_BYTES`; the last part is always
        sent.
        """
        if self.voice is not None:
            if more and self.voice.held_bytes > HELD_LIMIT_BYTES:
                raise UpstreamBroken(f"the answer is larger than {HELD_LIMIT_BYTES} bytes")
            data = self.voice.feed(data)
            if not more:
                data += await self._end(self.voice)
        if data or not more:
            await super().body(data, more=more)

    async def tell_broken(self, event: bytes) -> None:
        """Say what broke a stream; nothing did where its client had its answer cancelled."""
        if self.voice is None or self.ended_by != CANCELLED:
            await super().tell_broken(event)
        else:
            await super().body(self.voice.end_cancelled(), more=False)

    async def _end(self, voice: ResponseEncoder) -> bytes:
        """Return the last events, after storing the answer."""
        voice.elapsed_s = int(self._clock() - self.opened_s)
        data = voice.end_blocks()
        document = voice.failed_document() if voice.failed else voice.document()
        if voice.failed and self.ended_by == CANCELLED:
            document = None  # the cancelling request stores that
        if self.keeper is not None and document is not None:
            kept, self.kept = await self.keeper.keep(document, self.residency), True
            if kept.refusal is not None:
                voice.mark_unstored()
        return data + voice.end_stream()

    async def send_unasked(self) -> None:
        """Send and store an empty answer, for which no target was called."""
        await self.start(200, STREAM_HEAD)
        await self.body(b"", more=False)

    def set_usage(self, tokens: TokenCounts | None, choice: TargetChoice) -> None:
        super().set_usage(tokens, choice)
        if self.voice is not None:
            self.voice.booked = tokens

    def keep_allowed(self, asked: InferenceRequest, *, masked: bool) -> None:
        if self.keeper is None:
            return
        if asked.kept is None:
            self.forbid_storing()
            return
        self.keeper.allow(asked.kept if masked else {})
        if masked and self.voice is not None:
            self.voice.repeat(asked.kept)

    def forbid_storing(self) -> None:
        if self.keeper is not None:
            if self.keeper.background:
                why = "what a guardrail reads or masks here is not stored, and nobody would get it"
                raise RequestError("unsupported", f"`background`: {why}", param="background")
            self.keeper = None
            if self.voice is not None:
                self.voice.mark_unstored()

    def early_headers(self) -> Sequence[Header]:
        return self._dialect.headers(self.request_id)

    async def send_whole(self, status: int, headers: Sequence[Header], data: bytes) -> None:
        if self.opened_early:
            self.refusal = data
            await super().send_whole(status, headers, data)
            return
        voice, self.voice = self.voice, None
        if status >= 400:
            self.refusal = data
            data = self._dialect.translate_error(
                data, status, self.request_id, of_chat=self._of_chat
            )
        elif voice is not None:
            voice.elapsed_s = int(self._clock() - self.opened_s)
            voice.read_whole(data)
            document: Any = voice.document()
            if self.keeper is not None:
                document, refusal = await self.keeper.keep(document, self.residency)
                self.kept = True
                if refusal is not None:
                    headers = [*headers, (NOT_STORED, refusal.encode())]
            data = encode(document)
        await super().send_whole(status, headers, data)
