"""Rate limits of a request, in requests and tokens a minute, and the headers about them.

A request counts on arrival with the tokens that it may take: its prompt and its longest answer, or
a usual one without a limit. When it has ended, its actual tokens replace these; any excess counts
from then on. Hosts that share a ledger share limits: each uses its part, and requests more before
it refuses. Lines of batches do not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import make_url

from gateway.clock import Clock
from gateway.config.schema_limits import EACH, RateLimitSection
from gateway.errors import RequestError
from gateway.http.connection import Header
from gateway.request.limits.rate_share_client import RateServiceUnavailable, RateShareClient
from gateway.request.limits.rate_table import (
    RATES_FILE,
    LimitExceeded,
    RateCount,
    RateLimitAccount,
    RateTableFull,
    RateWindowTable,
)
from gateway.runtime import Runtime
from ledger.budgets.scopes import request_scopes
from ledger.identity.keys import Identity

REMEMBERED = 4096  # keys and models with cached accounts
TRIES = 8  # other workers of this host may take a share first
_RETRY_S = 1.0


class RateLimitUse:
    """One request's use of its limits; `headers` state what is left."""

    __slots__ = ("_accounts", "_limits", "counted", "headers", "tokens")

    def __init__(
        self, limits: "RateLimiter", accounts: Sequence[RateLimitAccount], counted: RateCount
    ) -> None:
        self._limits, self._accounts = limits, accounts
        self.counted, self.tokens = counted, 0
        self.headers = _headers_of(counted)

    def end(self) -> None:
        """Replace the counted tokens by `tokens`, which all attempts took."""
        self._limits.correct_use(self._accounts, self.counted, self.tokens)


class RateLimiter:
    """The rate limiter of one worker.

    `asking` requests larger parts of shared limits; `None` if one host has all.
    """

    def __init__(
        self,
        rates: RateWindowTable,
        limits: Sequence[RateLimitSection],
        clock: Clock,
        asking: RateShareClient | None = None,
    ) -> None:
        self._rates, self._clock, self._asking = rates, clock, asking
        rates.set_clock(clock.now_s(), clock.wall_us() // 1_000_000, clock.boot())
        self._of: Mapping[str, RateLimitSection] = {limit.scope: limit for limit in limits}
        self._known: dict[tuple[str, str], tuple[Identity, tuple[RateLimitAccount, ...]]] = {}

    def close(self) -> None:
        if self._asking is not None:
            self._asking.close()
        self._rates.close()

    async def count(self, identity: Identity, model: str, tokens: int) -> RateLimitUse | None:
        """Count the request; `None` if nothing limits it. Callers check `counted.over`.

        Raises `RequestError` 503 while the limits cannot be checked.
        """
        accounts = self._accounts(identity, model)
        if not accounts:
            return None
        try:
            counted = self._rates.count_request(accounts, tokens, self._second())
            if counted.short and self._asking is not None:
                counted = await self._count_widened(self._asking, accounts, counted, tokens)
        except (RateTableFull, RateServiceUnavailable) as unknown:
            told = "Rate limits cannot be checked now. Retry in 1 s."
            raise RequestError("unavailable", told, retry_after_s=_RETRY_S) from unknown
        return RateLimitUse(self, accounts, counted)

    async def _count_widened(
        self,
        asking: RateShareClient,
        accounts: Sequence[RateLimitAccount],
        counted: RateCount,
        tokens: int,
    ) -> RateCount:
        """Count again with more room from other hosts, or return the refusal if they have none."""
        for _ in range(TRIES):
            if not counted.short or not await asking.request_share(counted.short, tokens):
                break
            counted = self._rates.count_request(accounts, tokens, self._second())
        return counted

    def correct_use(
        self, accounts: Sequence[RateLimitAccount], counted: RateCount, used: int
    ) -> None:
        if counted.over is None:
            self._rates.correct(accounts, counted, used, self._second())

    def _second(self) -> int:
        return self._rates.second(self._clock.now_s())

    def _accounts(self, identity: Identity, model: str) -> tuple[RateLimitAccount, ...]:
        known = self._known.get((identity.key_id, model))
        if known is None or known[0] is not identity:  # the key may belong to another team now
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = identity, tuple(self._accounts_of(identity, model))
            self._known[identity.key_id, model] = known
        return known[1]

    def _accounts_of(self, identity: Identity, model: str) -> list[RateLimitAccount]:
        """Return the accounts; a limit of one name replaces the limit of all names of its kind.

        Only the key's own tags count: clients could use up others' limits, and all rows, with
        made-up ones.
        """
        found = []
        identity = replace(identity, tags=tuple(identity.own_tags.items()))
        for scope in request_scopes(identity, model):
            kind = scope.partition(":")[0]
            limit = self._of.get(scope) or self._of.get(f"{kind}:{EACH}")
            if limit is not None:
                limits = (limit.requests_per_minute, limit.tokens_per_minute)
                found.append(RateLimitAccount(scope, limits))
        return found


def are_shared(ledger_url: str) -> bool:
    """Return whether several hosts may share the limits; a SQLite ledger has one host."""
    return make_url(ledger_url).get_backend_name() != "sqlite"


def open_limits(
    limits: Sequence[RateLimitSection], runtime: Runtime, clock: Clock
) -> RateLimiter | None:
    """Return the rate limiter; `None` if the configuration has no rate limits."""
    if not limits:
        return None
    file = runtime.run_dir / RATES_FILE
    if not are_shared(runtime.ledger_url):
        return RateLimiter(RateWindowTable(file), limits, clock)
    return RateLimiter(
        RateWindowTable(file, clock.now_s), limits, clock, RateShareClient(runtime.run_dir)
    )


def rate_error(over: LimitExceeded) -> RequestError:
    """Return the 429 that names the limit and the wait."""
    account, at = over.account, 0 if over.kind == "requests" else 1
    limit = f"The limit of `{account.name}` is {account.limits[at]} {over.kind} a minute"
    if over.wait_s is None:
        told = f"{limit}, and this request alone exceeds it. Shorten it, or lower `max_tokens`."
        return RequestError("rate", told, param="max_tokens", retry=False)
    told = f"{limit}. Retry after {over.wait_s} s."
    return RequestError("rate", told, retry_after_s=float(over.wait_s), retry=True)


def _headers_of(counted: RateCount) -> tuple[Header, ...]:
    """Return OpenAI's headers, for the tightest of several limits."""
    found: list[Header] = []
    for kind, room in zip((b"requests", b"tokens"), counted.rooms, strict=True):
        if room is not None:
            found += [
                (b"x-ratelimit-limit-" + kind, b"%d" % room.limit),
                (b"x-ratelimit-remaining-" + kind, b"%d" % room.remaining),
                (b"x-ratelimit-reset-" + kind, b"%ds" % room.reset_s),
            ]
    return tuple(found)
