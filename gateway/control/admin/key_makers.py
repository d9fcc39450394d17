"""Makers of keys for themselves, and the limits on the keys that they make.

A maker grants no more than it has itself. Keys with the same first maker are counted together, so
that keys made by keys do not bypass a limit.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.auth import EVERY_TEAM, KEYS, OPEN, PERSON
from gateway.clock import moment_text
from gateway.config.settings import Settings
from gateway.control.admin import keys as team_keys
from gateway.control.admin.verb import OperationContext, OperationRefused
from gateway.control.roles import missing_scopes
from ledger.identity import keychanges
from ledger.identity.keychanges import KnownKey
from ledger.identity.keys import Identity
from ledger.identity.lineage import KeyOrigin, descend

# These scopes are granted by an admin, never by a key to its own keys.
_NEVER = frozenset({KEYS, KEYS + EVERY_TEAM})


@dataclass(frozen=True, slots=True)
class KeyMaker:
    """A key or person that makes keys, and the most it may grant. People have no `line`."""

    identity: Identity
    org: str
    team: str
    user: str | None
    scopes: frozenset[str]
    models: tuple[str, ...] | None
    internal_only: bool
    tags: tuple[tuple[str, str], ...]
    days: int | None
    ends_us: int | None
    origin: KeyOrigin  # of what it makes
    line: str | None

    @property
    def bounds(self) -> Identity:
        """Return the identity with which new keys are compared."""
        return Identity(
            key_id=self.identity.key_id, user_id=self.user, team_id=self.team, org_id=self.org,
            scopes=self.scopes, models=self.models,
            residency="internal_only" if self.internal_only else "any",
            tags=self.tags, isolation="team", counts_on=self.identity.counts_on,
        )  # fmt: skip

    def made(self, key: KnownKey) -> bool:
        """Return whether this key was made by the maker, or is the maker itself."""
        if self.line is None:
            return key.member == self.user and key.team == self.team
        return self.line == key.line_id or self.line in (key.makers or ())


def maker_of(place: OperationContext, connection: Connection) -> KeyMaker:
    """Return the caller as a maker. Raises `OperationRefused` if it may not make keys."""
    whose = place.identity
    if whose is None or whose.key_id == OPEN:
        raise OperationRefused(
            "only a key or a signed-in person can make keys: sign in, or send a key "
            "with the scope `keys:own`",
            kind="forbidden",
        )
    leave, days = whose.leave, place.settings.self_service.days
    if whose.key_id == PERSON:
        if leave is None or whose.user_id is None:
            words = "the access file does not let you make keys: its admin adds `keys` to your name"
            raise OperationRefused(words, kind="forbidden")
        least = min((item for item in (days, leave.days) if item is not None), default=None)
        return KeyMaker(
            whose, leave.org, leave.team, whose.user_id, frozenset(leave.scopes) - _NEVER,
            leave.models, leave.internal_only, tuple(leave.tags.items()), least, None,
            KeyOrigin(member=whose.user_id), None,
        )  # fmt: skip
    key = keychanges.find_key(connection, whose.key_id)
    if not key.is_in_force(place.now_us):  # it ended after it was admitted
        raise OperationRefused(
            "this key was revoked or has expired: use another key", kind="forbidden"
        )
    return KeyMaker(
        whose, whose.org_id, whose.team_id, whose.user_id, whose.scopes - _NEVER, whose.models,
        whose.residency == "internal_only", whose.tags, days, key.over_us,
        descend(key.id, key.origin), key.line_id,
    )  # fmt: skip


def refuse_wider(place: OperationContext, maker: KeyMaker, old: KnownKey) -> None:
    """Raise `OperationRefused` if the old key has more than its maker has now."""
    models = None if old.models is None else tuple(old.models)
    refuse_excess(place.settings, maker, tuple(old.scopes), models, old.residency)
    if dict(maker.tags) != (old.tags or {}) or maker.user != old.user:
        words = f"key `{old.id}` has other tags or another user than you have: make a new one"
        raise OperationRefused(words, kind="forbidden", param="key_id")


def refuse_excess(
    settings: Settings,
    maker: KeyMaker,
    scopes: tuple[str, ...],
    models: tuple[str, ...] | None,
    residency: str,
) -> None:
    if missing := missing_scopes(maker.scopes, scopes):
        names = ", ".join(f"`{name}`" for name in missing)
        words = f"you cannot hand on {names}"
        raise OperationRefused(words, kind="forbidden", param="scopes")
    team_keys.refuse_more_models(settings, maker.bounds, models)
    if maker.internal_only and residency != "internal_only":
        words = (
            "your requests never leave the network, nor do those of keys that you make: leave "
            "`internal_only` out, or say `true`"
        )
        raise OperationRefused(words, kind="forbidden", param="internal_only")


def end_of(place: OperationContext, maker: KeyMaker, wanted_us: int | None) -> int | None:
    """Return when the key ends: as wanted, or the latest allowed. Raises if wanted is later."""
    latest = [] if maker.days is None else [place.now_us + maker.days * team_keys.DAY_US]
    latest += [] if maker.ends_us is None else [maker.ends_us]
    latest_us = min(latest, default=None)
    if wanted_us is None:
        return latest_us
    if latest_us is not None and wanted_us > latest_us:
        words = f"it would end after {moment_text(latest_us)}: say fewer `days`, or none"
        raise OperationRefused(words, kind="forbidden", param="days")
    return wanted_us


def end_of_next(
    place: OperationContext, maker: KeyMaker, old: KnownKey, days: int | None
) -> int | None:
    """Return when a replacement key ends: as wanted, else as the old one, within the limit."""
    if days is not None:
        return end_of(place, maker, place.now_us + days * team_keys.DAY_US)
    if old.origin.root is None:  # an admin set its end
        return old.expires_us
    ends = (old.expires_us, end_of(place, maker, None))
    return min((at_us for at_us in ends if at_us is not None), default=None)


def keys_of(connection: Connection, maker: KeyMaker) -> list[KnownKey]:
    return [key for key in keychanges.known_keys(connection, maker.team) if maker.made(key)]


def own_key(connection: Connection, maker: KeyMaker, key_id: str) -> KnownKey:
    """Return the maker's key of this id. Raises `OperationRefused` for keys of others."""
    found = next((key for key in keys_of(connection, maker) if key.id == key_id), None)
    if found is None:
        missing = f"you have no key with the id `{key_id}`"
        raise OperationRefused(missing, kind="no_such_key", param="key_id")
    return found


def keys_of_root(connection: Connection, maker: KeyMaker) -> list[KnownKey]:
    """Return all keys with the same first maker, so that keys of keys share one limit.

    They include keys that an admin's key was rotated to.
    """
    first = maker.origin.makers[:1]
    return [
        key
        for key in keychanges.known_keys(connection, maker.team)
        if key.origin.root == maker.origin.root
        or (key.line is not None and (key.line_id,) == first)
        or (key.origin.root is None and (key.id,) == first)
    ]


def count_keys(found: list[KnownKey], maker: KeyMaker, now_us: int) -> tuple[int, int]:
    """Return the active keys of the first maker, and how many were made within a day.

    A rotated key of the first maker itself counts while it is ending.
    """
    root = maker.origin.root
    live = sum(
        key.is_in_force(now_us) and (key.origin.root == root or key.state(now_us) == "ending")
        for key in found
    )
    return live, len(times_made(found, maker, now_us))


def times_made(found: list[KnownKey], maker: KeyMaker, now_us: int) -> list[int]:
    """Return when keys of the first maker were made within a day, oldest first."""
    root, since_us = maker.origin.root, now_us - team_keys.DAY_US
    return sorted(
        key.created_us
        for key in found
        if (key.origin.root == root or key.line is not None) and key.created_us > since_us
    )


def refuse_too_many(
    place: OperationContext, connection: Connection, maker: KeyMaker, more: int
) -> None:
    limits = place.settings.self_service
    found = keys_of_root(connection, maker)
    live, lately = count_keys(found, maker, place.now_us)
    if live + more > limits.keys:
        words = f"{live} keys are in force, of {limits.keys} that one may have: revoke one first"
        raise OperationRefused(words, kind="forbidden")
    if lately >= limits.keys_per_day:
        next_us = times_made(found, maker, place.now_us)[-limits.keys_per_day] + team_keys.DAY_US
        words = (
            f"{lately} keys were made within 24 hours, of {limits.keys_per_day} that one may make: "
            f"the next may be made at {moment_text(next_us)}"
        )
        wait_s = (next_us - place.now_us) / 1_000_000
        raise OperationRefused(words, kind="rate", retry_after_s=wait_s)
