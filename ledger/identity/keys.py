"""Keys and whom they belong to: made, revoked, listed. Workers look them up in `keyring`.

A token is `gw_<public id>_<secret>`: the id is looked up, the secret is compared as an
HMAC-SHA-256 under a pepper that lies in a file beside the database and never in it. A token is
shown once. Every change raises the key generation in the same transaction, which is what makes a
revocation reach all workers.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from ledger.identity.keyring import Identity, KeyRing, LedgerUnavailable
from ledger.identity.secretfile import read_or_create_secret
from ledger.identity.tokens import GENERATION, PEPPER_FILE, SECRET_BYTES, secret_hash, token_text
from ledger.orm.identity import KeyRow, MetaRow, OrganisationRow, TeamRow, UserRow

__all__ = [
    "CreatedKey",
    "Identity",
    "IdentityError",
    "KeyRing",
    "KeySpec",
    "LedgerUnavailable",
    "bump_generation",
    "create_key",
    "load_pepper",
    "revoke_key",
]

PUBLIC_BYTES = 8
TEXT_LIMIT = 256  # characters
EVERYBODY = "*"  # a budget on `user:*` is each user's


class IdentityError(ValueError):
    """A key that cannot be made or found as asked."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What a key may do. Organisation, team and user are made with defaults when missing."""

    name: str
    team: str = "default"
    org: str = "default"
    user: str | None = None
    scopes: tuple[str, ...] = ("inference",)
    models: tuple[str, ...] | None = None  # None: every model
    residency: str = "any"
    tags: tuple[tuple[str, str], ...] = ()
    expires_us: int | None = None


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """`token` exists here and nowhere else; it is not in the repr."""

    key_id: str
    token: str

    def __repr__(self) -> str:
        return f"CreatedKey(key_id={self.key_id!r})"


def create_key(
    session: Session,
    spec: KeySpec,
    *,
    pepper: bytes,
    now_us: int,
    new_bytes: Callable[[int], bytes] = secrets.token_bytes,
) -> CreatedKey:
    """Add the key to the session's transaction; it works once that is committed."""
    _refuse_faults(spec, now_us)
    _ensure(session, OrganisationRow(id=spec.org, name=spec.org, created_us=now_us))
    _ensure(session, TeamRow(id=spec.team, org_id=spec.org, name=spec.team, created_us=now_us))
    if spec.user is not None:
        _ensure(session, UserRow(id=spec.user, org_id=spec.org, name=spec.user, created_us=now_us))
        if (of := session.get_one(UserRow, spec.user).org_id) != spec.org:
            raise IdentityError(f"user `{spec.user}` belongs to `{of}`, not `{spec.org}`")
    team = session.get_one(TeamRow, spec.team)
    if team.org_id != spec.org:
        raise IdentityError(f"team `{spec.team}` belongs to `{team.org_id}`, not `{spec.org}`")
    key_id, secret = new_bytes(PUBLIC_BYTES).hex(), new_bytes(SECRET_BYTES).hex()
    session.add(
        KeyRow(
            id=key_id,
            secret_hash=secret_hash(pepper, key_id, secret),
            name=spec.name,
            org_id=spec.org,
            team_id=spec.team,
            user_id=spec.user,
            scopes=list(spec.scopes),
            models=None if spec.models is None else list(spec.models),
            residency=spec.residency,
            tags=dict(spec.tags) or None,
            created_us=now_us,
            expires_us=spec.expires_us,
        )
    )
    bump_generation(session)
    session.flush()
    return CreatedKey(key_id, token_text(key_id, secret))


def revoke_key(session: Session, key_id: str, *, now_us: int) -> None:
    """Final: a second revocation changes nothing, and nothing brings the key back."""
    key = session.get(KeyRow, key_id)
    if key is None:
        raise IdentityError(f"no key has the id `{key_id}`")
    if key.revoked_us is None:
        key.revoked_us = now_us
        bump_generation(session)
        session.flush()


def bump_generation(session: Session) -> None:
    """Call after any change to keys, teams or users that workers must notice."""
    row = session.execute(
        select(MetaRow).where(MetaRow.name == GENERATION).with_for_update()
    ).scalar_one_or_none()
    if row is None:
        session.add(MetaRow(name=GENERATION, value=1))
    else:
        row.value += 1


def load_pepper(state_dir: Path, new_bytes: Callable[[int], bytes] = secrets.token_bytes) -> bytes:
    """The pepper of this installation, made at first use, readable by its owner only."""
    return read_or_create_secret(state_dir / PEPPER_FILE, new_bytes)


def _ensure(session: Session, row: OrganisationRow | TeamRow | UserRow) -> None:
    if session.get(type(row), row.id) is None:
        session.add(row)
        session.flush()


def _plain(text: str, limit: int) -> bool:
    """PostgreSQL stores no NUL, and no list of keys shows a line break."""
    return len(text) <= limit and text.isprintable()


def _refuse_faults(spec: KeySpec, now_us: int) -> None:
    if not (spec.name and _plain(spec.name, TEXT_LIMIT)):
        raise IdentityError(f"a key's name is 1 to {TEXT_LIMIT} printable characters")
    if not all(_plain(model, TEXT_LIMIT) for model in spec.models or ()):
        raise IdentityError(f"a model's name is at most {TEXT_LIMIT} printable characters")
    if not all(_plain(text, TEXT_LIMIT) for tag in spec.tags for text in tag):
        raise IdentityError(f"tags are at most {TEXT_LIMIT} printable characters each")
    if any("=" in name for name, _ in spec.tags):
        raise IdentityError("a tag's name has no `=`: budgets name a tag as `NAME=VALUE`")
    for what in (spec.team, spec.org, spec.user):
        if what is not None and not (what and _plain(what, 128) and what == what.strip()):
            words = "1 to 128 printable characters, without blanks at their ends"
            raise IdentityError(f"organisation, team and user ids are {words}")
        if what == EVERYBODY:
            words = "is nobody's id: budgets mean everybody by it"
            raise IdentityError(f"`{EVERYBODY}` {words}")
    if spec.expires_us is not None and spec.expires_us <= now_us:
        raise IdentityError("the key would be expired when it is made")
    if spec.residency not in ("any", "internal_only"):
        raise IdentityError(f"`{spec.residency}` is no residency: any, internal_only")
