"""Self-service operations: keys that members make for themselves, and a key's rights.

A maker is a key with the scope `keys:own`, or a person whose entry in the access file has `keys`.
New keys get at most the maker's rights and spend from the same budgets: team, organization, user
and tags are the maker's; models, scopes and end are no more than the maker's. A key made by a key
also counts on its maker's budgets and limits. `self_service` sets number, rate and lifetime. Other
keys of the team do not exist for a maker.
"""

from typing import Annotated, Any

import msgspec

from gateway.auth import ANY, INFERENCE, KEYS_OWN, OPEN, PERSON, residency_of
from gateway.clock import moment_text
from gateway.control import key_view
from gateway.control.admin import keys as team_keys
from gateway.control.admin.key_makers import (
    KeyMaker,
    count_keys,
    end_of,
    end_of_next,
    keys_of,
    keys_of_root,
    maker_of,
    own_key,
    refuse_excess,
    refuse_too_many,
    refuse_wider,
)
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from gateway.control.roles import KeyScope
from gateway.request.model_list import usable_models
from gateway.request.model_retirement import served_models
from ledger.database import reading
from ledger.identity import keychanges
from ledger.identity.keychanges import KnownKey
from ledger.identity.keys import Identity, KeySpec, bump_generation
from ledger.identity.lineage import DEEPEST, MOST_COUNTED

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class CreateOwnKeyInput(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of a key for the caller; missing fields are the maker's."""

    name: _Text
    scopes: (
        Annotated[
            list[KeyScope], msgspec.Meta(min_length=1, description="default: `inference` alone")
        ]
        | None
    ) = None
    models: Annotated[list[_Text], msgspec.Meta(max_length=100)] | None = None
    internal_only: bool | None = None
    days: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=team_keys.MOST_DAYS, description="expires after so many days"),
        ]
        | None
    ) = None
    note: Note | None = None


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
        "usable_models": _served_models(place, whose),
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
        maker = maker_of(place, connection)
        found = keys_of_root(connection, maker)
        budgets = key_view.budget_lines(connection, place.settings, maker.bounds, place.now_us)
    limits, settings = place.settings.self_service, place.settings
    live, lately = count_keys(found, maker, place.now_us)
    return {
        "object": "self_service",
        "team": maker.team,
        "org": maker.org,
        "user": maker.user,
        "scopes": sorted(maker.scopes),
        "models": None if maker.models is None else list(maker.models),
        "usable_models": _served_models(place, maker.bounds),
        "internal_only": maker.internal_only,
        "tags": dict(maker.tags),
        "days": maker.days,
        "ends": None if maker.ends_us is None else moment_text(maker.ends_us),
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
        maker = maker_of(place, connection)
        found = keys_of(connection, maker)
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
        bump_generation(connection)  # first: of two concurrent requests one waits, then counts
        maker = maker_of(place, connection)
        spec = _spec(place, maker, given)
        refuse_too_many(place, connection, maker, 1)
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
    """Replace one's own key by a key with the same rights and budgets."""
    ends_us = place.now_us + team_keys.overlap_us(given.overlap)
    with place.ledger.begin() as connection:
        bump_generation(connection)
        maker = maker_of(place, connection)
        old = own_key(connection, maker, given.key_id)
        refuse_wider(place, maker, old)
        expires_us = end_of_next(place, maker, old, given.days)
        if len(old.counts_on or ()) >= MOST_COUNTED:
            raise OperationRefused(
                "this key descends from too many other keys: make a new key instead"
            )
        refuse_too_many(place, connection, maker, 0)
        made = keychanges.rotate(
            connection, old.id, team_keys.author_of(place, given.note),
            pepper=team_keys.pepper_of(place, connection), ends_us=ends_us,
            expires_us=expires_us,
        )  # fmt: skip
        until_us = keychanges.find_key(connection, old.id).over_us or ends_us
    told = team_keys.shown_once(made, maker.team, maker.org)
    return {**told, "replaces": old.id, "until": moment_text(until_us)}


@verb(
    "POST /own/keys/revoke",
    KEYS_OWN,
    None,
    "Revoke one's own key, and with it those that it made",
    team_keys.RevokeKeyInput,
)
def own_keys_revoke(place: OperationContext, given: team_keys.RevokeKeyInput) -> dict[str, Any]:
    with place.ledger.begin() as connection:
        old = own_key(connection, maker_of(place, connection), given.key_id)
        return team_keys.revoke_with_made(place, connection, old.id, given.note)


def _holder(place: OperationContext) -> Identity:
    whose = place.identity
    if whose is None or whose.key_id in (PERSON, OPEN):
        words = "people hold no key: ask with the key that you want to know of"
        raise OperationRefused(words, kind="forbidden")
    return whose


def _served_models(place: OperationContext, whose: Identity) -> list[str]:
    """Return what `/v1/models` lists for the caller; retired models are refused."""
    return served_models(place.settings, usable_models(place.settings, whose), place.now_us)


def _spec(place: OperationContext, maker: KeyMaker, given: CreateOwnKeyInput) -> KeySpec:
    """Return the requested key within the maker's limits, else raise `OperationRefused`."""
    if len(maker.origin.makers) > DEEPEST or len(maker.origin.counts_on) > MOST_COUNTED:
        words = f"keys made by keys go {DEEPEST} deep: let the maker's own maker make this one"
        raise OperationRefused(words, kind="forbidden")
    scopes = tuple(str(scope) for scope in given.scopes or (INFERENCE,))
    asked = team_keys.spelled_models(place, given.models, maker.bounds)
    models = maker.models if asked is None else asked
    residency = residency_of(given.internal_only, maker.bounds)
    refuse_excess(place.settings, maker, scopes, models, residency)
    wanted_us = None if given.days is None else place.now_us + given.days * team_keys.DAY_US
    return KeySpec(
        name=given.name, team=maker.team, org=maker.org, user=maker.user, scopes=scopes,
        models=models, residency=residency, tags=maker.tags,
        expires_us=end_of(place, maker, wanted_us), origin=maker.origin,
    )  # fmt: skip


def _of_no_key(line: dict[str, Any], maker: KeyMaker) -> bool:
    """Return whether a line is bound to the key of a person, who has no key."""
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
