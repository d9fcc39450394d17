"""Stored answers for an `Idempotency-Key`, replayed where that is configured.

An answer is stored as it was sent: status, headers and body, or the whole text of a stream. It is
stored encrypted before its last byte is sent, so a client that has seen the end can get it again.
Larger answers, failures and answers that were cut off are not stored. Callers access rows in a
thread.
"""

import logging
from collections.abc import Callable, MutableMapping
from typing import Any, Protocol

import msgspec
from sqlalchemy import Engine

from gateway.config.schema_server import ReplaySection
from gateway.http.connection import Header
from ledger.idempotency import IdempotencyRecord
from ledger.stored_responses import find_response, store_response, stored_bytes

SECRET_CHARACTERS = 32  # minimum, against guessing it from a stolen database
HEARD_LIMIT_BYTES = 64 * 1024 * 1024  # of all answers that a worker captures at once
COUNT_US = 10_000_000  # interval of counting what other workers store
FAILED = 400
REPLAYED: Header = (b"idempotent-replayed", b"true")
COST = b"x-breakeven-cost-usd"  # removed, so that sums over answers are what was charged
_HOUR_US = 3_600_000_000

log = logging.getLogger("breakeven.keptanswers")


class ResponseCipher(Protocol):
    """A cipher of answers; implemented by `AesGcmCipher`, imported only where it is used."""

    def seal(self, plain: bytes, owner: bytes) -> bytes: ...

    def open(self, sealed: bytes, owner: bytes) -> bytes | None: ...


class StoredResponse(msgspec.Struct, frozen=True, array_like=True):
    """A stored response as it was sent; its `headers` have the id of its request."""

    status: int
    headers: tuple[Header, ...]
    body: bytes


class ResponseReplayStore:
    """The stored answers of one worker."""

    def __init__(
        self, cipher: ResponseCipher, bounds: ReplaySection, wall_us: Callable[[], int]
    ) -> None:
        self._cipher = cipher
        self._bounds = bounds
        self._wall_us = wall_us
        self._total = 0
        self._counted_us: int | None = None
        self._full = False
        self.heard = 0  # bytes of answers being captured

    def listen(self) -> "ResponseCapture":
        return ResponseCapture(self, self._bounds.max_bytes)

    def store(
        self, engine: Engine, asking: IdempotencyRecord, answer: StoredResponse, *, until_us: int
    ) -> None:
        """Store an answer; `until_us` is when its key expires."""
        now_us = self._wall_us()
        sealed = self._cipher.seal(msgspec.msgpack.encode(answer), _owner(asking))
        if self._has_capacity(engine, len(sealed), now_us):
            expires_us = min(now_us + round(self._bounds.hours * _HOUR_US), until_us)
            store_response(engine, asking, sealed, expires_us=expires_us)

    def find(self, engine: Engine, first: IdempotencyRecord) -> StoredResponse | None:
        """Return the answer of an earlier request; None if it is not stored or not decryptable."""
        sealed = find_response(engine, first, now_us=self._wall_us())
        plain = None if sealed is None else self._cipher.open(sealed, _owner(first))
        return None if plain is None else msgspec.msgpack.decode(plain, type=StoredResponse)

    def _has_capacity(self, engine: Engine, size: int, now_us: int) -> bool:
        """Return whether the store has room, by a count some seconds old and own additions."""
        if self._counted_us is None or now_us - self._counted_us >= COUNT_US:
            self._total, self._counted_us = stored_bytes(engine), now_us
        full = self._total + size > self._bounds.total_bytes
        if full and not self._full:
            log.warning("answers are not stored for replay: `replay.total_bytes` is reached")
        self._full = full
        if not full:
            self._total += size
        return not full


class ResponseCapture:
    """A capture of one answer while it is sent; dropped once the answer cannot be stored."""

    __slots__ = ("_head", "_kept", "_most", "_parts", "_size")

    def __init__(self, kept: ResponseReplayStore, most: int) -> None:
        self._kept = kept
        self._most = most
        self._head: tuple[int, tuple[Header, ...]] | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def receive_message(self, message: MutableMapping[str, Any]) -> StoredResponse | None:
        """Take an ASGI message; return the whole answer with the last one."""
        if message["type"] == "http.response.start":
            if message["status"] < FAILED:
                self._head = (message["status"], tuple(message["headers"]))
            return None
        if self._head is None:
            return None
        body = message.get("body", b"")
        self._parts.append(body)
        self._size += len(body)
        self._kept.heard += len(body)
        if self._size > self._most or self._kept.heard > HEARD_LIMIT_BYTES:
            self.close()
            return None
        if message.get("more_body", False):
            return None
        answer = StoredResponse(*self._head, b"".join(self._parts))
        self.close()
        return answer

    def close(self) -> None:
        """Drop the captured bytes."""
        self._kept.heard -= self._size
        self._head, self._parts, self._size = None, [], 0


def mark_replayed(answer: StoredResponse) -> StoredResponse:
    """Return the answer as it is replayed: without a cost, and marked as a replay."""
    headers = (*(header for header in answer.headers if header[0] != COST), REPLAYED)
    return StoredResponse(answer.status, headers, answer.body)


def _owner(asking: IdempotencyRecord) -> bytes:
    return msgspec.msgpack.encode((asking.key_id, asking.name, asking.request_id, asking.digest))
