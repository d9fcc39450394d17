"""Creation of batches, once per `Idempotency-Key` and within a team's limit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256

from fastapi import Request, Response

from gateway.batches.batch_database import BatchDatabase
from gateway.config.settings import ServerSection
from gateway.control.access import caller_of
from gateway.errors import RequestError
from gateway.http.fields import read_fields
from gateway.request.idempotency.idempotency_store import name_of, reused_key_error
from gateway.request.ignored_names import IGNORED, listed_names
from gateway.request.request_tags import ValuedTags, with_request_tags
from ledger.batches.store import BatchRecord
from ledger.idempotency import IdempotencyRecord

HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class BatchClaim:
    """A batch to be created; `earlier` was already created with the same idempotency key.

    `asking` is the idempotency claim; None without a key.
    """

    record: BatchRecord
    asking: IdempotencyRecord | None
    earlier: BatchRecord | None


class BatchMaker:
    """Creator of batches.

    `most` is the limit of unfinished batches of a team. `on_made` is called for each new batch.
    `budgets` knows the tags that count for budgets.
    """

    def __init__(
        self,
        stored: BatchDatabase,
        server: ServerSection,
        on_made: Callable[[], None],
        budgets: ValuedTags,
        *,
        most: int,
    ) -> None:
        self._stored = stored
        self._server = server
        self._on_made = on_made
        self._budgets = budgets
        self._most = most

    async def claim(
        self, request: Request, response: Response, record: BatchRecord, text: bytes, path: str
    ) -> BatchClaim:
        """Return the batch under the id of its idempotency key; a header marks a replay.

        The batch keeps the request's tags; a header names the tags that were ignored.
        """
        record = replace(record, tags=self._tags(request, response))
        once = request.headers.get("idempotency-key")
        if once is None:
            return BatchClaim(record, None, None)
        asked = path.encode() + b"\0" + text
        said = read_fields(request.scope["headers"]).tags
        if said is not None:  # the raw header: budgets on tags may change
            asked += b"\0" + said.encode()
        digest = sha256(asked).digest()
        name = name_of(once.encode("latin-1"))
        asking = IdempotencyRecord(record.key_id, name, digest, record.id)
        until_us = record.created_us + round(self._server.idempotency.hours * HOUR_US)
        first = await self._stored.call(
            self._stored.claim_key, asking, now_us=record.created_us, expires_us=until_us
        )
        if first.digest != asking.digest:
            raise reused_key_error(f"`{first.request_id}`")
        record = replace(record, id=first.request_id)
        earlier = await self._stored.call(self._stored.batches.find, record.id, record.team_id)
        if earlier is not None:
            response.headers["idempotent-replayed"] = "true"
        return BatchClaim(record, asking, earlier)

    def _tags(self, request: Request, response: Response) -> str | None:
        """Return the request's tags that have a budget per value, in the format of lines."""
        said = read_fields(request.scope["headers"]).tags
        if said is None:
            return None
        who, ignored = with_request_tags(caller_of(request), said, self._budgets)
        if ignored:
            response.headers.append(IGNORED.decode(), listed_names(ignored).decode())
        named = [f"{name}={value}" for name, value in who.tags if name in who.named_tags]
        return ",".join(named) or None

    async def store(self, claim: BatchClaim) -> None:
        """Store the batch. Raises `RequestError` (429) and frees the key at the team's limit."""
        record, asking = claim.record, claim.asking
        if await self._stored.call(self._stored.batches.create, record, most=self._most):
            self._on_made()
            return
        if asking is not None:
            await self._stored.call(self._stored.free_key, replace(asking, request_id=record.id))
        message = (
            f"The team has {self._most} unfinished batches, and may have no more: wait for one."
        )
        raise RequestError("too_many_batches", message)
