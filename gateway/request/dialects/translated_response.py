"""The client's side of a request in another dialect: takes chat's bytes, sends this dialect's.

Everything behind it, from the dispatcher to the sweeper, sees an ordinary reply.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from backends.errors import UpstreamBroken
from gateway.http.body import Members
from gateway.http.connection import Header, RequestConnection
from gateway.kinds.chat import read_chat
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.client_response import ClientResponse, Send
from gateway.request.dialects.base import Dialect
from gateway.request.dialects.response_encoder import ResponseEncoder
from ledger.journals.records import TokenCounts

HELD_LIMIT_BYTES = 64 * 1024 * 1024  # as of an answer in one piece


class TranslatedResponse(ClientResponse):
    """`voice` is there once the request is understood; before that only errors are told."""

    __slots__ = ("_dialect", "_of_chat", "voice")

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
        self._connection = None  # nothing goes a shorter way: it is to be translated
        self._dialect = dialect
        self._of_chat = False  # until it is a chat request, what is wrong has its names here
        self.voice: ResponseEncoder | None = None

    @property
    def counts(self) -> bool:
        """Whether only a number of tokens is asked for."""
        return self._dialect.counts

    def decode_request(
        self, members: Members, *, max_n: int, session: str | None, wall_s: int
    ) -> InferenceRequest:
        """The chat request that it comes to; from here on answers are translated."""
        heard = self._dialect.decode_request(members)
        self._of_chat = True
        asked = read_chat(heard.members, max_n=max_n, session=session or heard.session)
        if not self.counts:
            self.voice = heard.voice(self.request_id, wall_s)
        return replace(asked, translated=heard.marked, ignored=heard.ignored)

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        await super().start(status, [*headers, *self._dialect.headers(self.request_id)])

    async def body(self, data: bytes, *, more: bool) -> None:
        """Part of a stream, in chat's events; what says nothing here is not sent.

        Raises `UpstreamBroken` where an answer goes on without end; its last part is always sent.
        """
        if self.voice is not None:
            if more and self.voice.held_bytes > HELD_LIMIT_BYTES:
                raise UpstreamBroken(f"the answer is larger than {HELD_LIMIT_BYTES} bytes")
            data = self.voice.feed(data) + (b"" if more else self.voice.end())
        if data or not more:
            await super().body(data, more=more)

    def set_usage(self, tokens: TokenCounts | None) -> None:
        if self.voice is not None:
            self.voice.booked = tokens

    async def send_whole(self, status: int, headers: Sequence[Header], data: bytes) -> None:
        voice, self.voice = self.voice, None
        if status >= 400:
            data = self._dialect.translate_error(
                data, status, self.request_id, of_chat=self._of_chat
            )
        elif voice is not None:
            data = voice.encode_whole(data)
        await super().send_whole(status, headers, data)
