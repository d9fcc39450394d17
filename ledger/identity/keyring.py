"""A worker's bounded cache of keys, never older than the key generation.

Each lookup compares the generation that the ledger writer publishes in shared memory with the one
of its caches; a change empties them. A result is cached only if the generation has not changed
during the read, so a concurrent request cannot bring back a revoked key. While the database is
away, cached keys still work; any other key raises `LedgerUnavailable`.
"""

import asyncio
import hashlib
import mmap
import os
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DBAPIError

from ledger.identity import foreign_tokens
from ledger.identity.lineage import ends_of_lines
from ledger.identity.people import KeyLeave
from ledger.identity.tokens import GENERATION_FILE, PEPPER_FILE, TokenParts, is_match, split_token
from ledger.orm.identity import KeyChangeRow, KeyRow, TeamRow

CACHED_KEYS = 10_000
CACHED_UNKNOWN = 10_000
CACHED_TOKENS = 10_000
LOOKUPS_AT_ONCE = 4
LOOKUP_TIMEOUT_S = 5.0
_COUNTER = struct.Struct("<Q")
K = TypeVar("K")
V = TypeVar("V")


class LedgerUnavailable(Exception):
    """The key is not cached and the database cannot be reached: answer 503, not 401."""


BATCH_TAG: Final = "batch"  # the tag of each line of a batch: the batch's id


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller of one request, with its rights.

    `named_tags` are the tags that the request itself named. Budgets and rows count them. Policies
    ignore them, because otherwise a client could choose its policy.
    """

    key_id: str
    user_id: str | None
    team_id: str
    org_id: str
    scopes: frozenset[str]
    models: tuple[str, ...] | None  # None: every model
    residency: str
    tags: tuple[tuple[str, str], ...]
    isolation: str
    counts_on: tuple[str, ...] = ()  # other keys whose budgets and limits also bind this one
    leave: KeyLeave | None = None  # set for a person who may make keys
    named_tags: frozenset[str] = frozenset()

    @property
    def own_tags(self) -> dict[str, str]:
        """Return the key's own tags, without those that the request named."""
        return {name: value for name, value in self.tags if name not in self.named_tags}


class ForeignParts(NamedTuple):
    """A token that another gateway made: the key's id here, and the token's digest."""

    key_id: str
    digest: str

    def __repr__(self) -> str:
        return f"ForeignParts(key_id={self.key_id!r})"


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: bytes
    identity: Identity
    expires_us: int | None
    member: str | None


class KeyGeneration:
    """A counter in shared memory, written by the ledger writer and read by every worker."""

    def __init__(self, run_dir: Path, name: str = GENERATION_FILE) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        file = os.open(run_dir / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(file, _COUNTER.size)
            self._memory = mmap.mmap(file, _COUNTER.size)
        finally:
            os.close(file)

    def read(self) -> int:
        (value,) = _COUNTER.unpack(self._memory[:])
        return int(value)

    def publish(self, value: int) -> None:
        self._memory[:] = _COUNTER.pack(value)

    def close(self) -> None:
        self._memory.close()


class KeyRing:
    """The key lookup of one worker."""

    def __init__(
        self,
        engine: Engine,
        run_dir: Path,
        state_dir: Path,
        *,
        end_with_maker: bool = True,
        is_member: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Read keys from `engine`.

        With `end_with_maker`, a key ends with the keys that made it, and once `is_member` is false
        for the person who made it.
        """
        self._engine = engine
        self._end_with_maker = end_with_maker
        self._is_member = is_member
        self._pepper_path = state_dir / PEPPER_FILE
        self._pepper: bytes | None = None
        self._generation = KeyGeneration(run_dir)
        self._seen = self._generation.read()
        self._known: OrderedDict[str, _Entry] = OrderedDict()
        self._unknown: OrderedDict[str, None] = OrderedDict()
        self._checked: OrderedDict[bytes, _Entry] = OrderedDict()  # by digests of whole tokens
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    def recall(self, token: str, now_us: int) -> Identity | None:
        """Return the identity of a token from the cache, or `None` if a lookup is needed.

        The cache is keyed by a digest, so no token is stored and no comparison leaks one.
        """
        self._follow_generation()
        entry = self._checked.get(_digest(token))
        if entry is None or self._is_over(entry, now_us):
            return None
        return entry.identity

    async def lookup(self, token: str, now_us: int) -> Identity | None:
        """Return the identity of a token, `None` if it is malformed, unknown, expired or revoked.

        Raises `LedgerUnavailable`.
        """
        parts = split_token(token) or await self._foreign_parts(token)
        if parts is None:
            return None
        self._follow_generation()
        entry = self._known.get(parts.key_id)
        if entry is None:
            if parts.key_id in self._unknown:
                return None
            entry = await self._read(parts.key_id)
            if entry is None:
                return None
        identity = self._judge(entry, parts, now_us)
        if identity is not None and self._known.get(parts.key_id) is entry:
            _remember(self._checked, _digest(token), entry, CACHED_TOKENS)
        return identity

    async def _foreign_parts(self, token: str) -> "TokenParts | ForeignParts | None":
        """Return the parts of another gateway's token, `None` if no such key can exist."""
        digest = foreign_tokens.digest_of(token)
        if digest is None:
            return None
        if self._pepper is None:
            await asyncio.to_thread(self._read_pepper)
        if self._pepper is None:
            return None  # no key was ever made here
        return ForeignParts(foreign_tokens.foreign_id(self._pepper, digest), digest)

    async def delegated(self, key_id: str, now_us: int) -> Identity | None:
        """Return the identity of a key in force without its secret, for callers proved otherwise.

        Raises `LedgerUnavailable`.
        """
        self._follow_generation()
        if key_id in self._unknown:
            return None
        entry = self._known.get(key_id) or await self._read(key_id)
        if entry is None or self._is_over(entry, now_us):
            return None
        return entry.identity

    def close(self) -> None:
        self._generation.close()

    def _judge(
        self, entry: _Entry, parts: "TokenParts | ForeignParts", now_us: int
    ) -> Identity | None:
        if self._pepper is None:
            return None  # no key was ever made here
        if isinstance(parts, ForeignParts):
            key_id, digest = parts
            if not foreign_tokens.is_foreign_match(entry.stored, self._pepper, key_id, digest):
                return None
        elif not is_match(entry.stored, self._pepper, parts):
            return None
        return None if self._is_over(entry, now_us) else entry.identity

    def _is_over(self, entry: _Entry, now_us: int) -> bool:
        if entry.expires_us is not None and now_us >= entry.expires_us:
            return True
        member = entry.member if self._end_with_maker else None
        return member is not None and not self._is_member(member)

    def _follow_generation(self) -> None:
        published = self._generation.read()
        if published != self._seen:
            self._known.clear()
            self._unknown.clear()
            self._checked.clear()
            self._seen = published

    async def _read(self, key_id: str) -> _Entry | None:
        async with self._lookups:
            began = self._generation.read()
            try:
                async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                    entry = await asyncio.to_thread(self._fetch, key_id)
            except (DBAPIError, OSError, TimeoutError) as error:
                raise LedgerUnavailable("the key cannot be read from the ledger") from error
        if began == self._generation.read() == self._seen:
            if entry is None:
                _remember(self._unknown, key_id, None, CACHED_UNKNOWN)
            else:
                _remember(self._known, key_id, entry, CACHED_KEYS)
        return entry

    def _read_pepper(self) -> None:
        if self._pepper is None and self._pepper_path.exists():
            self._pepper = self._pepper_path.read_bytes()

    def _fetch(self, key_id: str) -> _Entry | None:
        self._read_pepper()
        ends = select(func.min(KeyChangeRow.ends_us)).where(KeyChangeRow.key_id == key_id)
        query = (
            select(
                *KeyRow.__table__.columns,
                TeamRow.residency.label("team_residency"),
                TeamRow.isolation,
                ends.scalar_subquery().label("ends_us"),
            )
            .join(TeamRow, TeamRow.id == KeyRow.team_id)
            .where(KeyRow.id == key_id, KeyRow.revoked_us.is_(None))
        )
        with self._engine.connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                return None
            over = [row["expires_us"], row["ends_us"]]
            if self._end_with_maker:
                over += ends_of_lines(connection, row["makers"] or ())
        internal = "internal_only" in (row["residency"], row["team_residency"])
        identity = Identity(
            key_id=row["id"],
            user_id=row["user_id"],
            team_id=row["team_id"],
            org_id=row["org_id"],
            scopes=frozenset(row["scopes"]),
            models=None if row["models"] is None else tuple(row["models"]),
            residency="internal_only" if internal else "any",
            tags=tuple((row["tags"] or {}).items()),
            isolation=row["isolation"],
            counts_on=tuple(row["counts_on"] or ()),
        )
        ends_us = min((at_us for at_us in over if at_us is not None), default=None)
        return _Entry(row["secret_hash"], identity, ends_us, row["member"])


def _digest(token: str) -> bytes:
    return hashlib.blake2b(token.encode(errors="surrogatepass"), digest_size=32).digest()


def _remember(cache: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    cache[key] = value
    if len(cache) > limit:
        cache.popitem(last=False)
