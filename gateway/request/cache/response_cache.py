"""Response cache: answers equal requests of one tenant from memory, and records savings.

The lookup follows the key check, the model's route and the policy's terms, and precedes planning. A
hit counts on the rate limits and has a row of its own. It adds no demand, output length, latency or
SLO result, because no target is called. Requests with an `Idempotency-Key` are looked up there
before.
"""

from collections.abc import MutableMapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from gateway.clock import Clock
from gateway.config.schema_response_cache import ResponseCacheSection
from gateway.http.connection import Header
from gateway.http.fields import RequestHead
from gateway.kinds.inference_request import InferenceRequest
from gateway.policies.policy_match import PolicyTerms
from gateway.request.active_policies import PolicyDerived
from gateway.request.attempt import Attempt
from gateway.request.cache.answer_memory import AnswerMemory
from gateway.request.cache.cache_scopes import CacheScopes
from gateway.request.cache.cache_use import AskedBytes, CacheUse
from gateway.request.cache.cacheable import (
    BODY_LIMIT_BYTES,
    NOTHING_SAID,
    answer_name,
    directives_of,
    is_cacheable,
    is_canary,
    is_keepable,
)
from gateway.request.client_response import ClientResponse, Send
from gateway.request.limits.rate_limiter import RateLimiter
from gateway.request.routes import RouteContext
from ledger.identity.keys import Identity
from ledger.journals.journal import JournalError, JournalWriter
from ledger.journals.records import AttemptSettled, CacheHit, TokenCounts

SAYS = b"x-breakeven-cache"
HIT: Header = (SAYS, b"hit")
MISS: Header = (SAYS, b"miss")
BYPASS: Header = (SAYS, b"bypass")
COST = b"x-breakeven-cost-usd"
FREE: Header = (COST, b"0.000000000000")
# Headers stored with an answer; the others belong to one request.
_KEPT = frozenset(
    (b"content-type", b"cache-control", b"x-breakeven-backend", b"x-breakeven-policy",
     b"x-breakeven-decision", b"x-breakeven-ignored")
)  # fmt: skip
_OK = 200


class CacheCounters(Protocol):
    """Counts of the cache; implemented by `gateway.telemetry.metrics.response_cache`."""

    def count_lookup(self, result: str) -> None:
        """Count one qualifying request by its result."""

    def count_avoided(self, backend: str, cost_pusd: int) -> None:
        """Add the cost that a hit avoided."""

    def set_used_bytes(self, used: int) -> None:
        """Publish the bytes of this worker's part that hold answers."""


class CachedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """An answer as sent, with its booked cost; `request_id` is that of the first request."""

    request_id: str
    target: str
    backend: Literal["own", "api"]
    cost_pusd: int | None
    engine_us: int
    input_tokens: int
    output_tokens: int
    headers: tuple[Header, ...]
    body: bytes


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(CachedAnswer).decode


class CacheFind(NamedTuple):
    """A cached answer for a request of this route and policy terms, with its age."""

    route: RouteContext
    terms: PolicyTerms
    answer: CachedAnswer
    age_us: int


class ResponseCache:
    """The response cache of one worker."""

    def __init__(
        self,
        memory: AnswerMemory,
        section: ResponseCacheSection,
        journal: JournalWriter,
        counters: CacheCounters,
        clock: Clock,
        scopes: PolicyDerived[CacheScopes],
    ) -> None:
        self._memory = memory
        self._models = frozenset(section.models)
        self._most = section.answer_bytes
        self._max_age_us = round(section.max_age_s * 1e6)
        self._journal = journal
        self._counters = counters
        self._clock = clock
        self._scopes = scopes

    def close(self) -> None:
        self._memory.close()

    async def answer(
        self, use: CacheUse, identity: Identity, reply: ClientResponse, limits: RateLimiter | None
    ) -> bool:
        """Return whether the answer was cached and sent; a hit counts on the rate limits."""
        found = self.find(use, identity, reply.request_id)
        if found is None:
            if use.name is not None:
                self.listen(use, reply)
            return False
        if limits is not None:
            reply.use = await limits.count(identity, found.route.model, 0)
            if reply.use is not None and reply.use.counted.over is not None:
                reply.use = None
                return False  # planning refuses it, with the reason
        await self.send(use, found, identity, reply)
        return True

    def consider(
        self,
        reply: ClientResponse,
        asked: InferenceRequest,
        path: str,
        fields: RequestHead,
        text: bytes,
    ) -> None:
        """Mark the response to a qualifying request, which may be cached or become so.

        The answer has `bypass` if the client asked for that.
        """
        said = NOTHING_SAID if fields.caching is None else directives_of(fields.caching)
        if not (said.reads or said.stores):
            reply.wrap_send(_saying_bypass)
            if is_cacheable(asked, any_answer=said.any_answer):
                self._counters.count_lookup("bypass")
            return
        if len(text) > BODY_LIMIT_BYTES or reply.is_remembered:
            return
        if is_cacheable(asked, any_answer=said.any_answer):
            told = tuple(sorted(fields.asked_of_api.items()))
            reply.cache_use = CacheUse(asked, AskedBytes(path, text, told), said)

    def find(self, use: CacheUse, identity: Identity, request_id: str) -> CacheFind | None:
        """Return the cached answer, if any. Raises what planning would raise for the model.

        Without one, `use.name` is set to the name for storing the new answer, if it may be stored.
        """
        asked, said, scopes = use.asked, use.directives, self._scopes.value
        route, terms = scopes.scope_of(request_id, asked, identity, clock=self._clock)
        if (self._models and route.model not in self._models) or is_canary(terms):
            return None
        now_us = self._clock.wall_us()
        version = scopes.version_at(now_us)
        use.name = answer_name(use.sent, route, terms, asked.residency, version)
        found = self._memory.find(use.name) if said.reads else None
        if found is not None:
            age_us, most_us = max(0, now_us - found.stored_us), self._max_age_us
            if said.max_age_s is not None:
                most_us = min(most_us, said.max_age_s * 1_000_000)
            if age_us <= most_us:
                return CacheFind(route, terms, _decode(found.data), age_us)
        self._counters.count_lookup("miss" if said.reads else "bypass")
        return None

    async def send(
        self, use: CacheUse, found: CacheFind, identity: Identity, reply: ClientResponse
    ) -> None:
        """Record the hit, then send the cached answer; a full journal does not prevent that."""
        answer = found.answer
        use.tokens = TokenCounts(input=answer.input_tokens, output=answer.output_tokens)
        self._append(self._record(use, found, identity, reply.request_id))
        self._counters.count_lookup("hit")
        self._counters.count_avoided(answer.backend, answer.cost_pusd or 0)
        ends = found.route.retirement
        headers = [*answer.headers, *(() if ends is None else ends.headers)]
        headers += [HIT, (b"age", b"%d" % (found.age_us // 1_000_000)), FREE]
        await reply.send_again(headers, answer.body, whole=not use.asked.stream)

    def _record(
        self, use: CacheUse, found: CacheFind, identity: Identity, request_id: str
    ) -> CacheHit:
        answer = found.answer
        return CacheHit(
            request_id=request_id,
            hit_us=self._clock.wall_us(),
            key_id=identity.key_id,
            user_id=identity.user_id,
            team_id=identity.team_id,
            org_id=identity.org_id,
            kind=str(use.asked.kind),
            stream=use.asked.stream,
            model=found.route.model,
            policy=found.terms.rule.policy.name,
            target=answer.target,
            backend=answer.backend,
            answered_by=answer.request_id,
            age_us=found.age_us,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            avoided_pusd=answer.cost_pusd,
            engine_us=answer.engine_us,
            tags=tuple(identity.tags),
        )

    def _append(self, record: CacheHit) -> None:
        """Write the hit's record. A hit costs nothing, so it may stay unrecorded if that fails."""
        try:
            self._journal.append(record)
        except JournalError:
            self._counters.count_lookup("unrecorded")

    def listen(self, use: CacheUse, reply: ClientResponse) -> None:
        """Capture the answer of `reply`, to store it before its last byte is sent."""
        capture = _AnswerCapture(self, use, reply)
        reply.wrap_send(capture.wrap)

    def keep(
        self, use: CacheUse, attempt: Attempt, headers: tuple[Header, ...], body: bytes
    ) -> None:
        """Store a whole answer under its request's name, if the rules allow it."""
        record, name = attempt.record, use.name
        if record is None or name is None or use.forbidden or not use.directives.stores:
            return
        if not is_keepable(attempt, record, use.asked):
            return
        answer = _answer_of(attempt, record, headers, body)
        if self._memory.store(name, self._clock.wall_us(), _encode(answer)):
            self._counters.count_lookup("stored")
            self._counters.set_used_bytes(self._memory.used_bytes)

    @property
    def answer_bytes(self) -> int:
        """Return the size of the largest answer that is stored."""
        return self._most


def _answer_of(
    attempt: Attempt, record: AttemptSettled, headers: tuple[Header, ...], body: bytes
) -> CachedAnswer:
    target, tokens = attempt.step.frozen.target, record.tokens
    return CachedAnswer(
        request_id=attempt.plan.request_id,
        target=target.name,
        backend="own" if target.own else "api",
        cost_pusd=record.cost_pusd,
        engine_us=record.engine_us,
        input_tokens=attempt.tokens - tokens.output,
        output_tokens=tokens.output,
        headers=tuple(header for header in headers if header[0] in _KEPT),
        body=body,
    )


def _saying_bypass(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], BYPASS]}
        await send(message)

    return sending


class _AnswerCapture:
    """A capture of one answer while it is sent; it is stored before its last byte leaves."""

    __slots__ = ("_cache", "_head", "_parts", "_reply", "_size", "_use")

    def __init__(self, cache: ResponseCache, use: CacheUse, reply: ClientResponse) -> None:
        self._cache = cache
        self._use = use
        self._reply = reply
        self._head: tuple[Header, ...] | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def wrap(self, send: Send) -> Send:
        said = MISS if self._use.directives.reads else BYPASS

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], said]
                message = {**message, "headers": headers}
                if message["status"] == _OK and not self._reply.opened_early:
                    self._head = tuple(headers)
            elif self._head is not None:
                self._take(self._head, message)
            await send(message)

        return sending

    def _take(self, head: tuple[Header, ...], message: MutableMapping[str, Any]) -> None:
        part, reply = message.get("body", b""), self._reply
        if part != reply.ping:  # a keep-alive is no part of the answer
            self._parts.append(part)
            self._size += len(part)
        if self._size > self._cache.answer_bytes:
            self._head, self._parts = None, []
        elif not message.get("more_body", False):
            if reply.attempt is not None and not reply.broken and reply.ended_by is None:
                self._cache.keep(self._use, reply.attempt, head, b"".join(self._parts))
            self._head, self._parts = None, []
