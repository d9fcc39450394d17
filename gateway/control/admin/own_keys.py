"""Keys that members make for themselves, and what a key may do: the verbs of self-service.

A maker is a key with the scope `keys:own`, or a person whose entry in the access file has `keys`.
What it makes may do a part of what it may itself, and spends of the same budgets: team,
organisation, user and tags are the maker's, models, scopes and end no more than the maker's, and a
key made by a key counts on its maker's budgets and limits as well. How many, how often and for how
long an admin says (`self_service`). Other keys of the team are not there for a maker.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from sqlalchemy import Connection

from gateway.auth import ANY, EVERY_TEAM, INFERENCE, KEYS, KEYS_OWN, OPEN, PERSON
from gateway.config.settings import Settings
from gateway.control import key_view
from gateway.control.admin import keys as team_keys
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from gateway.control.roles import KeyScope, missing_scopes
from ledger.database import reading
from ledger.identity import keychanges
from ledger.identity.keychanges import KnownKey
from ledger.identity.keys import Identity, KeySpec, bump_generation
from ledger.identity.lineage import DEEPEST, MOST_COUNTED, KeyOrigin, descend

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
# Who may act for a team is chosen by who may, never by a key that made itself.
_NEVER = frozenset({KEYS, KEYS + EVERY_TEAM})


class CreateOwnKeyInput(msgspec.Struct, forbid_unknown_fields=True):
    """What a key for oneself may be given; what is left out is as the maker has it."""

    name: _Text
    scopes: (
        Annotated[
            list[KeyScope], msgspec.Meta(min_length=1, description="default: `inference` alone")
        ]
        | None
    ) = None
    models: Annotated[list[_Text], msgspec.Meta(max_length=100)] | None = None
    internal_only: bool = False
    days: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=team_keys.MOST_DAYS, description="expires after so many days"),
        ]
        | None
    ) = None
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class KeyMaker:
    """Who makes keys, and the most that it hands on. `line`: None for a person."""

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
        """It as the identity that what it makes is compared with."""
        return Identity(
            key_id=self.identity.key_id, user_id=self.user, team_id=self.team, org_id=self.org,
            scopes=self.scopes, models=self.models,
            residency="internal_only" if self.internal_only else "any",
            tags=self.tags, isolation="team", counts_on=self.identity.counts_on,
        )  # fmt: skip

    def made(self, key: KnownKey) -> bool:
        """Whether this key comes from it, or is itself."""
        if self.line is None:
            return key.member == self.user and key.team == self.team
        return self.line == key.line_id or self.line in (key.makers or ())


@verb("GET /key", ANY, None, "What the key that asks may do, what is left, what it used", NoInput)
def key_show(place: OperationContext, _: NoInput) -> dict[str, Any]:
    whose = _holder(place)
    with reading(place.ledger) as connection:
        key = keychanges.find_key(connection, whose.key_id)
        used = key_view.usage_by_key(connection, key.team, [key.id], place.now_us)[key.id]
        budgets = key_view.budget_lines(connection, place.settings, whose, place.now_us)
    return {
        **_document(key, place),
        "residency": whose.residency,
        "usable_models": key_view.usable_models(place.settings, whose),
        "budgets": budgets,
        "rate_limits": key_view.rate_lines(place.settings, whose),
        "usage": key_view.usage_document(used),
    }


@verb(
    "GET /own",
    KEYS_OWN,
    None,
    "What keys one may make for oneself, and the budgets and limits that bind them",
    NoInput,
)
def own_show(place: OperationContext, _: NoInput) -> dict[str, Any]:
    with reading(place.ledger) as connection:
        maker = _maker(place, connection)
        found = _of_same_root(connection, maker)
        budgets = key_view.budget_lines(connection, place.settings, maker.bounds, place.now_us)
    limits, settings = place.settings.self_service, place.settings
    live, lately = _counts(found, maker, place.now_us)
    return {
        "object": "self_service",
        "team": maker.team,
        "org": maker.org,
        "user": maker.user,
        "scopes": sorted(maker.scopes),
        "models": None if maker.models is None else list(maker.models),
        "usable_models": key_view.usable_models(settings, maker.bounds),
        "internal_only": maker.internal_only,
        "tags": dict(maker.tags),
        "days": maker.days,
        "ends": None if maker.ends_us is None else key_view.moment(maker.ends_us),
        "when_maker_ends": limits.when_maker_ends,
        "keys": {"limit": limits.keys, "in_force": live},
        "keys_per_day": {"limit": limits.keys_per_day, "made": lately},
        "budgets": [line for line in budgets if not _of_no_key(line, maker)],
        "rate_limits": [
            line
            for line in key_view.rate_lines(settings, maker.bounds)
            if not _of_no_key(line, maker)
        ],
    }


@verb(
    "GET /own/keys",
    KEYS_OWN,
    None,
    "The keys that one made for oneself, with what each used; never a token",
    NoInput,
)
def own_keys_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    with reading(place.ledger) as connection:
        maker = _maker(place, connection)
        found = _of_maker(connection, maker)
        ids = [key.id for key in found]
        used = key_view.usage_by_key(connection, maker.team, ids, place.now_us)
    return list_document(
        [{**_document(key, place), "usage": key_view.usage_document(used[key.id])} for key in found]
    )


@verb(
    "POST /own/keys",
    KEYS_OWN,
    None,
    "Make a key for oneself, which may do no more than its maker; its token is shown once",
    CreateOwnKeyInput,
)
def own_keys_create(place: OperationContext, given: CreateOwnKeyInput) -> dict[str, Any]:
    with place.ledger.begin() as connection:
        bump_generation(connection)  # first: of two who make keys at once one waits, then counts
        maker = _maker(place, connection)
        spec = _spec(place, maker, given)
        _refuse_too_many(place, connection, maker, 1)
        made = keychanges.make(
            connection,
            spec,
            team_keys.author_of(place, given.note),
            pepper=team_keys.pepper_of(place, connection),
        )
        return {
            **team_keys.shown_once(made, maker.team, maker.org),
            **_document(keychanges.find_key(connection, made.key_id), place),
        }


@verb(
    "POST /own/keys/rotate",
    KEYS_OWN,
    None,
    "Make a key in the place of one's own; the old one goes on for a while",
    team_keys.RotateKeyInput,
)
def own_keys_rotate(place: OperationContext, given: team_keys.RotateKeyInput) -> dict[str, Any]:
    """It may do what the old one may, and spends of the same budgets."""
    ends_us = place.now_us + team_keys.overlap_us(given.overlap)
    with place.ledger.begin() as connection:
        bump_generation(connection)
        maker = _maker(place, connection)
        old = _own_key(connection, maker, given.key_id)
        _refuse_wider(place, maker, old)
        expires_us = _end_of_next(place, maker, old, given.days)
        if len(old.counts_on or ()) >= MOST_COUNTED:
            raise OperationRefused("this key counts on too many others: make a new one")
        _refuse_too_many(place, connection, maker, 0)
        made = keychanges.rotate(
            connection, old.id, team_keys.author_of(place, given.note),
            pepper=team_keys.pepper_of(place, connection), ends_us=ends_us,
            expires_us=expires_us,
        )  # fmt: skip
        until_us = keychanges.find_key(connection, old.id).over_us or ends_us
    told = team_keys.shown_once(made, maker.team, maker.org)
    return {**told, "replaces": old.id, "until": key_view.moment(until_us)}


@verb(
    "POST /own/keys/revoke",
    KEYS_OWN,
    None,
    "Revoke one's own key, and with it those that it made",
    team_keys.RevokeKeyInput,
)
def own_keys_revoke(place: OperationContext, given: team_keys.RevokeKeyInput) -> dict[str, Any]:
    with place.ledger.begin() as connection:
        old = _own_key(connection, _maker(place, connection), given.key_id)
        return team_keys.revoke_with_made(place, connection, old.id, given.note)


def _holder(place: OperationContext) -> Identity:
    whose = place.identity
    if whose is None or whose.key_id in (PERSON, OPEN):
        words = "people hold no key: ask with the key that you want to know of"
        raise OperationRefused(words, kind="forbidden")
    return whose


def _maker(place: OperationContext, connection: Connection) -> KeyMaker:
    """Who asks, as a maker. Raises where nobody said what it may make."""
    whose = place.identity
    if whose is None or whose.key_id == OPEN:
        raise OperationRefused("a key or a person makes keys for themselves", kind="forbidden")
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
    if not key.is_in_force(place.now_us):  # it ended since it was let in
        raise OperationRefused("this key has ended", kind="forbidden")
    return KeyMaker(
        whose, whose.org_id, whose.team_id, whose.user_id, whose.scopes - _NEVER, whose.models,
        whose.residency == "internal_only", whose.tags, days, key.over_us,
        descend(key.id, key.origin), key.line_id,
    )  # fmt: skip


def _spec(place: OperationContext, maker: KeyMaker, given: CreateOwnKeyInput) -> KeySpec:
    """The key as asked for, within the maker's bounds. Raises where it is not."""
    if len(maker.origin.makers) > DEEPEST or len(maker.origin.counts_on) > MOST_COUNTED:
        words = f"keys made by keys go {DEEPEST} deep: let the maker's own maker make this one"
        raise OperationRefused(words, kind="forbidden")
    scopes = tuple(str(scope) for scope in given.scopes or (INFERENCE,))
    models = maker.models if given.models is None else tuple(given.models)
    internal = given.internal_only or maker.internal_only
    residency = "internal_only" if internal else "any"
    for name in given.models or ():
        team_keys.refuse_unknown(place, name)
    _refuse_excess(place.settings, maker, scopes, models, residency)
    wanted_us = None if given.days is None else place.now_us + given.days * team_keys.DAY_US
    return KeySpec(
        name=given.name, team=maker.team, org=maker.org, user=maker.user, scopes=scopes,
        models=models, residency=residency, tags=maker.tags,
        expires_us=_end(place, maker, wanted_us), origin=maker.origin,
    )  # fmt: skip


def _refuse_wider(place: OperationContext, maker: KeyMaker, old: KnownKey) -> None:
    """What the old one was given may be more than its maker has by now."""
    models = None if old.models is None else tuple(old.models)
    _refuse_excess(place.settings, maker, tuple(old.scopes), models, old.residency)
    if dict(maker.tags) != (old.tags or {}) or maker.user != old.user:
        words = f"key `{old.id}` has other tags or another user than you have: make a new one"
        raise OperationRefused(words, kind="forbidden", param="key_id")


def _refuse_excess(
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
        words = "your requests never leave the network, nor do those of keys that you make"
        raise OperationRefused(words, kind="forbidden", param="internal_only")


def _end(place: OperationContext, maker: KeyMaker, wanted_us: int | None) -> int | None:
    """When the key ends: as wanted, where that is no later than it may. Raises where it is."""
    latest = [] if maker.days is None else [place.now_us + maker.days * team_keys.DAY_US]
    latest += [] if maker.ends_us is None else [maker.ends_us]
    latest_us = min(latest, default=None)
    if wanted_us is None:
        return latest_us
    if latest_us is not None and wanted_us > latest_us:
        words = f"it would end after {key_view.moment(latest_us)}: say fewer `days`, or none"
        raise OperationRefused(words, kind="forbidden", param="days")
    return wanted_us


def _end_of_next(
    place: OperationContext, maker: KeyMaker, old: KnownKey, days: int | None
) -> int | None:
    """Of a key in another one's place: as wanted, else as the old one, where it may."""
    if days is not None:
        return _end(place, maker, place.now_us + days * team_keys.DAY_US)
    if old.origin.root is None:  # an admin said when it ends
        return old.expires_us
    ends = (old.expires_us, _end(place, maker, None))
    return min((at_us for at_us in ends if at_us is not None), default=None)


def _of_maker(connection: Connection, maker: KeyMaker) -> list[KnownKey]:
    return [key for key in keychanges.known_keys(connection, maker.team) if maker.made(key)]


def _own_key(connection: Connection, maker: KeyMaker, key_id: str) -> KnownKey:
    """Another's key is told from none by nobody."""
    found = next((key for key in _of_maker(connection, maker) if key.id == key_id), None)
    if found is None:
        missing = f"you have no key with the id `{key_id}`"
        raise OperationRefused(missing, kind="no_such_key", param="key_id")
    return found


def _of_same_root(connection: Connection, maker: KeyMaker) -> list[KnownKey]:
    """All that came from the same first maker, so that keys of keys are no way around a limit.

    Among them what a key that an admin made was rotated to.
    """
    first = maker.origin.makers[:1]
    return [
        key
        for key in keychanges.known_keys(connection, maker.team)
        if key.origin.root == maker.origin.root
        or (key.line is not None and (key.line_id,) == first)
        or (key.origin.root is None and (key.id,) == first)
    ]


def _counts(found: list[KnownKey], maker: KeyMaker, now_us: int) -> tuple[int, int]:
    """Keys in force that came from the first maker, and those made within a day.

    Of the first maker itself count those that were rotated and go on for a while.
    """
    root = maker.origin.root
    live = sum(
        key.is_in_force(now_us) and (key.origin.root == root or key.state(now_us) == "ending")
        for key in found
    )
    lately = [key for key in found if key.origin.root == root or key.line is not None]
    return live, sum(key.created_us > now_us - team_keys.DAY_US for key in lately)


def _refuse_too_many(
    place: OperationContext, connection: Connection, maker: KeyMaker, more: int
) -> None:
    limits = place.settings.self_service
    live, lately = _counts(_of_same_root(connection, maker), maker, place.now_us)
    if live + more > limits.keys:
        words = f"{live} keys are in force, of {limits.keys} that one may have: revoke one first"
        raise OperationRefused(words, kind="forbidden")
    if lately >= limits.keys_per_day:
        words = f"{lately} keys were made within a day, and no more are: try again tomorrow"
        raise OperationRefused(words, kind="rate")


def _of_no_key(line: dict[str, Any], maker: KeyMaker) -> bool:
    """What binds a person's own key, who has none."""
    return maker.line is None and line["scope"].startswith("key:")


def _document(key: KnownKey, place: OperationContext) -> dict[str, Any]:
    made_by = key.makers[-1] if key.makers else key.member
    return {
        **team_keys.key_document(key, place.now_us),
        "internal_only": key.residency == "internal_only",
        "tags": key.tags or {},
        "made_by": made_by,
    }


VERBS = (key_show, own_show, own_keys_list, own_keys_create, own_keys_rotate, own_keys_revoke)
