"""Operations of `breakeven keys`: list, create, rotate, revoke.

No caller grants more than it has: the scopes, models, residency, tags and end of a key bound those
of the keys that it makes. A caller that acts for one team makes keys of that team only; keys of
other teams do not exist for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from sqlalchemy import Connection

from gateway.auth import EVERY_TEAM, INFERENCE, KEYS, OPEN, PERSON, allowed, residency_of
from gateway.config.aliases import configured_name, resolve_model
from gateway.control.admin.verb import Note, OperationContext, OperationRefused, list_document, verb
from gateway.control.override_changes import OverrideError, span_us
from gateway.control.roles import ROLES, KeyRole, KeyScope, missing_scopes, role_of
from ledger.database import reading
from ledger.identity import keychanges
from ledger.identity.keychanges import ChangeAuthor, KnownKey
from ledger.identity.keys import CreatedKey, Identity, IdentityError, KeySpec
from ledger.identity.pepper import agreed_pepper

if TYPE_CHECKING:
    from gateway.config.settings import Settings

DAY_US = 86_400_000_000
OVERLAP = "1h"
MOST_DAYS = 36_500
PAGE = 1_000  # keys

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Days = Annotated[int, msgspec.Meta(ge=1, le=MOST_DAYS, description="expires after so many days")]
_Id = Annotated[str, msgspec.Meta(max_length=64, description="as the list has it")]


class CreateTeamKeyInput(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of a key for the caller's own team. Either `role` or `scopes`; default: models."""

    name: _Text
    user: _Text | None = None
    role: KeyRole | None = None
    scopes: Annotated[list[KeyScope], msgspec.Meta(min_length=1)] | None = None
    models: Annotated[list[_Text], msgspec.Meta(max_length=100)] | None = None
    internal_only: bool | None = None  # as the maker's
    days: _Days | None = None
    note: Note | None = None


class CreateKeyInput(msgspec.Struct, forbid_unknown_fields=True):
    """Input of a key of any team; missing organization, team and user are created."""

    name: _Text
    team: _Text = "default"
    org: _Text = "default"
    user: _Text | None = None
    role: KeyRole | None = None
    scopes: Annotated[list[KeyScope], msgspec.Meta(min_length=1)] | None = None
    models: Annotated[list[_Text], msgspec.Meta(max_length=100)] | None = None
    internal_only: bool | None = None  # as the maker's
    tags: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=16)] | None = None
    days: _Days | None = None
    note: Note | None = None


class ListKeysInput(msgspec.Struct, forbid_unknown_fields=True):
    """A page of the list, in order of creation."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE)] = PAGE
    after: Annotated[_Id, msgspec.Meta(description="the `last_id` of the page before")] | None = (
        None
    )


class RotateKeyInput(msgspec.Struct, forbid_unknown_fields=True):
    key_id: _Id
    overlap: Annotated[
        str, msgspec.Meta(description="how long the old one goes on: `90s`, `30m`, `2h`, `7d`")
    ] = OVERLAP
    days: (
        Annotated[
            int, msgspec.Meta(ge=1, le=MOST_DAYS, description="of the new one; default: as the old")
        ]
        | None
    ) = None
    note: Note | None = None


class RevokeKeyInput(msgspec.Struct, forbid_unknown_fields=True):
    key_id: _Id
    note: Note | None = None


@verb(
    "GET /keys",
    KEYS,
    "keys list",
    "The team's keys, or with `keys:all` everybody's; never a token",
    ListKeysInput,
)
def keys_list(place: OperationContext, given: ListKeysInput) -> dict[str, Any]:
    whose = place.identity
    team = None if whose is None or _acts_for_all(whose) else whose.team_id
    with reading(place.ledger) as connection:
        after = given.after and _within_reach(place, connection, given.after, param="after")
        found = keychanges.known_keys(connection, team, after=after or None, most=given.limit + 1)
    page = found[: given.limit]
    return {
        **list_document([key_document(key, place.now_us) for key in page]),
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
        "has_more": len(found) > len(page),
    }


@verb(
    "POST /keys",
    KEYS,
    "keys create",
    "Make a key of one's own team; its token is shown once",
    CreateTeamKeyInput,
)
def keys_create(place: OperationContext, given: CreateTeamKeyInput) -> dict[str, Any]:
    """Create a key of the caller's team, which inherits everything but the scopes."""
    whose = place.identity
    wide = CreateKeyInput(
        name=given.name, user=given.user, role=given.role, scopes=given.scopes,
        models=given.models, internal_only=given.internal_only, days=given.days, note=given.note,
    )  # fmt: skip
    if whose is None:
        return keys_create_any.work(place, wide)
    if not whose.team_id:
        raise OperationRefused(
            "a signed-in person has no team: name the team of the key (`--team`)", param="team"
        )
    wide.team, wide.org, wide.tags = whose.team_id, whose.org_id, dict(whose.tags)
    if whose.models is not None and given.models is None:
        wide.models = list(whose.models)
    return keys_create_any.work(place, wide)


@verb(
    "POST /keys/any",
    KEYS + EVERY_TEAM,
    "keys create",
    "Make a key of any team; its token is shown once",
    CreateKeyInput,
)
def keys_create_any(place: OperationContext, given: CreateKeyInput) -> dict[str, Any]:
    spec = KeySpec(
        name=given.name,
        team=given.team,
        org=given.org,
        user=given.user,
        scopes=_scopes(given),
        models=spelled_models(place, given.models, place.identity),
        residency=residency_of(given.internal_only, place.identity),
        tags=tuple((given.tags or {}).items()),
        expires_us=None if given.days is None else place.now_us + given.days * DAY_US,
    )
    _refuse_excess(place, spec.scopes, spec.models, spec.residency)
    with place.ledger.begin() as connection:
        author, pepper = author_of(place, given.note), pepper_of(place, connection)
        _refuse_another_teams_user(place.identity, connection, spec.user)
        ends_us = _own_end(place.identity, connection)
        if spec.expires_us is None:
            spec = replace(spec, expires_us=ends_us)
        _refuse_later(spec.expires_us, ends_us)
        made = keychanges.make(connection, spec, author, pepper=pepper)
    return shown_once(made, spec.team, spec.org)


@verb(
    "POST /keys/rotate",
    KEYS,
    "keys rotate",
    "Make a key that may do the same; the old one goes on for a while",
    RotateKeyInput,
)
def keys_rotate(place: OperationContext, given: RotateKeyInput) -> dict[str, Any]:
    ends_us = place.now_us + overlap_us(given.overlap)
    expires_us = None if given.days is None else place.now_us + given.days * DAY_US
    with place.ledger.begin() as connection:
        old = _within_reach(place, connection, given.key_id)
        models = None if old.models is None else tuple(old.models)
        _refuse_excess(place, old.scopes, models, old.residency)
        _refuse_other_tags(place.identity, old)
        lasts_until = old.expires_us if expires_us is None else expires_us
        _refuse_later(lasts_until, _own_end(place.identity, connection))
        made = keychanges.rotate(
            connection, given.key_id, author_of(place, given.note),
            pepper=pepper_of(place, connection), ends_us=ends_us, expires_us=expires_us,
        )  # fmt: skip
        after = keychanges.find_key(connection, given.key_id)
    told = shown_once(made, old.team, old.org)
    return {**told, "replaces": given.key_id, "until": _moment(after.over_us or ends_us)}


@verb(
    "POST /keys/revoke",
    KEYS,
    "keys revoke",
    "Revoke a key: every worker refuses it within a second",
    RevokeKeyInput,
)
def keys_revoke(place: OperationContext, given: RevokeKeyInput) -> dict[str, Any]:
    whose = place.identity
    with place.ledger.begin() as connection:
        old = _within_reach(place, connection, given.key_id)
        if whose is not None and not _acts_for_all(whose):
            _refuse_excess(place, old.scopes, None, "any", models_too=False)
        return revoke_with_made(place, connection, given.key_id, given.note)


def revoke_with_made(
    place: OperationContext, connection: Connection, key_id: str, note: str | None
) -> dict[str, Any]:
    """Revoke a key and the keys that it made, unless `when_maker_ends` keeps them."""
    ends = place.settings.self_service.when_maker_ends == "end"
    also = keychanges.revoke(connection, key_id, author_of(place, note), with_made=ends)
    return {"key_id": key_id, "state": "revoked", **({"also": also} if also else {})}


def _within_reach(
    place: OperationContext, connection: Connection, key_id: str, *, param: str = "key_id"
) -> KnownKey:
    """Return the key. For a caller of one team, a key of another team does not exist."""
    whose, missing = place.identity, f"no key has the id `{key_id}`"
    try:
        found = keychanges.find_key(connection, key_id)
    except IdentityError:
        raise OperationRefused(missing, kind="no_such_key", param=param) from None
    if whose is not None and not _acts_for_all(whose) and found.team != whose.team_id:
        raise OperationRefused(missing, kind="no_such_key", param=param)
    return found


def _refuse_excess(
    place: OperationContext,
    scopes: tuple[str, ...] | list[str],
    models: tuple[str, ...] | None,
    residency: str,
    *,
    models_too: bool = True,
) -> None:
    """Refuse rights beyond the caller's; the host's own command line has no limits."""
    if (whose := place.identity) is None:
        return
    if missing := missing_scopes(whose.scopes | _made_for_others(whose), scopes):
        names = ", ".join(f"`{name}`" for name in missing)
        words = f"this key lacks {names}, and cannot hand it on"
        raise OperationRefused(words, kind="forbidden", param="scopes")
    if not models_too:
        return
    refuse_more_models(place.settings, whose, models)
    if whose.residency == "internal_only" != residency:
        words = (
            "this key's requests never leave the network: leave `internal_only` out, or say true"
        )
        raise OperationRefused(words, kind="forbidden", param="internal_only")


def refuse_more_models(
    settings: "Settings", whose: Identity, models: tuple[str, ...] | None
) -> None:
    """Refuse models that the caller may not use; aliases are resolved first."""
    if whose.models is None:
        return
    for name in models or ():
        found = resolve_model(settings, name)
        if not allowed(whose.models, name, name if found is None else found[0]):
            models = None
    if models is None:
        words = f"this key may use {', '.join(whose.models) or 'no model'} alone"
        raise OperationRefused(words, kind="forbidden", param="models")


def _refuse_another_teams_user(
    whose: Identity | None, connection: Connection, user: str | None
) -> None:
    """Refuse a user of another team."""
    if whose is None or user is None or _acts_for_all(whose):
        return
    teams = keychanges.teams_of(connection, user)
    if teams and whose.team_id not in teams:
        words = f"`{user}` is a user of another team: let somebody with `keys:all` make this key"
        raise OperationRefused(words, kind="forbidden", param="user")


def _refuse_other_tags(whose: Identity | None, old: KnownKey) -> None:
    """Refuse to rotate a key with other tags: tags select policies, and the caller gets it."""
    if whose is None or _acts_for_all(whose) or dict(whose.tags) == (old.tags or {}):
        return
    words = f"key `{old.id}` has other tags than this one: let somebody with `keys:all` rotate it"
    raise OperationRefused(words, kind="forbidden", param="key_id")


def _own_end(whose: Identity | None, connection: Connection) -> int | None:
    """Return when the caller's key expires; `None` for people and the command line."""
    if whose is None or whose.key_id in (PERSON, OPEN):
        return None
    return keychanges.find_key(connection, whose.key_id).expires_us


def _refuse_later(expires_us: int | None, ends_us: int | None) -> None:
    """Refuse a later end than the caller's own; else a key could outlive its end."""
    if ends_us is not None and (expires_us is None or expires_us > ends_us):
        words = f"this key ends at {_moment(ends_us)}: say `days` that end no later"
        raise OperationRefused(words, kind="forbidden", param="days")


def _scopes(given: CreateKeyInput) -> tuple[str, ...]:
    if given.role is not None and given.scopes is not None:
        raise OperationRefused(
            "name a role or scopes, not both: a role is a set of scopes", param="role"
        )
    if given.role is not None:
        return tuple(sorted(ROLES[given.role]))
    return tuple(str(scope) for scope in given.scopes or (KeyScope.INFERENCE,))


def spelled_models(
    place: OperationContext, names: Sequence[str] | None, whose: Identity | None
) -> tuple[str, ...] | None:
    """Return the names as the configuration spells them, as requests are compared with them.

    Raises `OperationRefused` for an unknown name: a key for it would fail with every request. The
    error lists only models that the caller may use.
    """
    if names is None:
        return None
    from gateway.request.model_list import usable_models  # noqa: PLC0415  (no list needs it)

    settings = place.settings
    for name in names:
        if name not in settings.models and resolve_model(settings, name) is None:
            usable = settings.models if whose is None else usable_models(settings, whose)
            listed = ", ".join(f"`{model}`" for model in usable) or "none for this key"
            words = f"there is no model named `{name}`; the configuration has {listed}"
            raise OperationRefused(words, param="models")
    return tuple(configured_name(settings, name) for name in names)


def _acts_for_all(whose: Identity) -> bool:
    return KEYS + EVERY_TEAM in whose.scopes


def _made_for_others(whose: Identity) -> frozenset[str]:
    """Return scopes that a person may grant without having them: people do not call models."""
    person = whose.key_id == PERSON and _acts_for_all(whose)
    return frozenset({INFERENCE}) if person else frozenset()


def overlap_us(words: str) -> int:
    try:
        return span_us(words)
    except OverrideError as error:
        raise OperationRefused(str(error), param="overlap") from None


def author_of(place: OperationContext, note: str | None) -> ChangeAuthor:
    return ChangeAuthor(place.by, note, place.now_us)


def pepper_of(place: OperationContext, connection: Connection) -> bytes:
    return agreed_pepper(connection, place.settings.state.resolve())


def shown_once(made: CreatedKey, team: str, org: str) -> dict[str, Any]:
    return {"key_id": made.key_id, "token": made.token, "team": team, "org": org}


def key_document(key: KnownKey, now_us: int) -> dict[str, Any]:
    return {
        "key_id": key.id,
        "name": key.name,
        "org": key.org,
        "team": key.team,
        "user": key.user,
        "scopes": key.scopes,
        "role": role_of(key.scopes),
        "models": key.models,
        "state": key.state(now_us),
        "created": _day(key.created_us),
        "expires": None if key.over_us is None else _day(key.over_us),
    }


def _day(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).date().isoformat()


def _moment(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M:%S UTC}"


VERBS = (keys_list, keys_create, keys_create_any, keys_rotate, keys_revoke)
