"""Keys and their owners: creation and revocation. Workers look keys up in `keyring`.

A token is `gw_<public id>_<secret>`. The id is looked up; the secret is compared as an HMAC-SHA-256
under a pepper that is in a file outside the database. A token is shown once. Every change raises
the key generation in the same transaction, so that a revocation reaches all workers.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, insert, select, update

from ledger.identity.keyring import BATCH_TAG, Identity, KeyRing, LedgerUnavailable
from ledger.identity.lineage import NOBODYS, KeyOrigin
from ledger.identity.secretfile import read_or_create_secret
from ledger.identity.tokens import (
    GENERATION,
    PEPPER_FILE,
    PUBLIC_BYTES,
    SECRET_BYTES,
    TEXT_LIMIT,
    secret_hash,
    token_text,
)
from ledger.orm.identity import KeyRow, MetaRow, OrganisationRow, TeamRow, UserRow

__all__ = [
    "BATCH_TAG",
    "CreatedKey",
    "Identity",
    "IdentityError",
    "KeyRing",
    "KeySpec",
    "LedgerUnavailable",
    "add_key",
    "bump_generation",
    "create_key",
    "load_pepper",
    "revoke_key",
]

EVERYBODY = "*"  # a budget on `user:*` applies to each user


class IdentityError(ValueError):
    """A key that cannot be made or found."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """The rights of a key. Missing organisations, teams and users are added with defaults."""

    name: str
    team: str = "default"
    org: str = "default"
    user: str | None = None
    scopes: tuple[str, ...] = ("inference",)
    models: tuple[str, ...] | None = None  # None: every model
    residency: str = "any"
    tags: tuple[tuple[str, str], ...] = ()
    expires_us: int | None = None
    origin: KeyOrigin = NOBODYS


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key. `token` is stored nowhere else and is left out of the repr."""

    key_id: str
    token: str

    def __repr__(self) -> str:
        return f"CreatedKey(key_id={self.key_id!r})"


def create_key(
    connection: Connection,
    spec: KeySpec,
    *,
    pepper: bytes,
    now_us: int,
    new_bytes: Callable[[int], bytes] = secrets.token_bytes,
) -> CreatedKey:
    """Add a key to the connection's transaction. The key works after the commit.

    Raises `IdentityError` for a faulty spec.
    """
    key_id, secret = new_bytes(PUBLIC_BYTES).hex(), new_bytes(SECRET_BYTES).hex()
    add_key(connection, spec, (key_id, secret_hash(pepper, key_id, secret)), now_us=now_us)
    return CreatedKey(key_id, token_text(key_id, secret))


def add_key(
    connection: Connection, spec: KeySpec, hashed: tuple[str, bytes], *, now_us: int
) -> None:
    """Add a key whose id and hash are known, with its owners. Raises `IdentityError`."""
    _refuse_faults(spec, now_us)
    _ensure_owners(connection, spec, now_us)
    key_id, hash_ = hashed
    connection.execute(
        insert(KeyRow).values(
            id=key_id,
            secret_hash=hash_,
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
            line=spec.origin.line,
            makers=list(spec.origin.makers) or None,
            counts_on=list(spec.origin.counts_on) or None,
            member=spec.origin.member,
        )
    )
    bump_generation(connection)


def revoke_key(connection: Connection, key_id: str, *, now_us: int) -> bool:
    """Revoke a key for good. Return whether it was not revoked before.

    Raises `IdentityError` if there is no such key.
    """
    in_force = update(KeyRow).where(KeyRow.id == key_id, KeyRow.revoked_us.is_(None))
    if connection.execute(in_force.values(revoked_us=now_us)).rowcount:
        bump_generation(connection)
        return True
    if connection.execute(select(KeyRow.id).where(KeyRow.id == key_id)).one_or_none() is None:
        raise IdentityError(f"no key has the id `{key_id}`; `breakeven keys list` shows all")
    return False


def bump_generation(connection: Connection) -> None:
    """Raise the key generation, after any change to keys, teams or users."""
    risen = update(MetaRow).where(MetaRow.name == GENERATION).values(value=MetaRow.value + 1)
    if not connection.execute(risen).rowcount:
        connection.execute(insert(MetaRow).values(name=GENERATION, value=1))


def load_pepper(state_dir: Path, new_bytes: Callable[[int], bytes] = secrets.token_bytes) -> bytes:
    """Return this host's pepper, created at first use and readable only by its owner."""
    return read_or_create_secret(state_dir / PEPPER_FILE, new_bytes)


def _ensure_owners(connection: Connection, spec: KeySpec, now_us: int) -> None:
    """Add missing owners. Raises `IdentityError` for a team or user of another organisation."""
    organisation = select(OrganisationRow.id).where(OrganisationRow.id == spec.org)
    if connection.execute(organisation).one_or_none() is None:
        made = insert(OrganisationRow).values(id=spec.org, name=spec.org, created_us=now_us)
        connection.execute(made)
    if spec.user is not None:
        _ensure_member(connection, UserRow, "user", spec.user, spec.org, now_us)
    _ensure_member(connection, TeamRow, "team", spec.team, spec.org, now_us)


def _ensure_member(
    connection: Connection,
    table: type[TeamRow] | type[UserRow],
    kind: str,
    member: str,
    org: str,
    now_us: int,
) -> None:
    query = select(table.org_id).where(table.id == member)
    of = connection.execute(query).scalar_one_or_none()
    if of is None:
        made = insert(table).values(id=member, org_id=org, name=member, created_us=now_us)
        connection.execute(made)
    elif of != org:
        raise IdentityError(
            f"{kind} `{member}` belongs to `{of}`, not `{org}`: "
            f"name its organisation (`--org {of}`)"
        )


def _plain(text: str, limit: int) -> bool:
    """Return whether a text is printable: PostgreSQL stores no NUL, and lists need one line."""
    return len(text) <= limit and text.isprintable()


def _refuse_faults(spec: KeySpec, now_us: int) -> None:
    if not (spec.name and _plain(spec.name, TEXT_LIMIT)):
        raise IdentityError(f"a key's name is 1 to {TEXT_LIMIT} printable characters")
    if not all(_plain(model, TEXT_LIMIT) for model in spec.models or ()):
        raise IdentityError(f"a model's name is at most {TEXT_LIMIT} printable characters")
    _refuse_tags(spec)
    for what in (spec.team, spec.org, spec.user):
        if what is not None and not (what and _plain(what, 128) and what == what.strip()):
            words = "1 to 128 printable characters, without blanks at their ends"
            raise IdentityError(f"organisation, team and user ids are {words}")
        if what == EVERYBODY:
            words = "is nobody's id: budgets mean everybody by it"
            raise IdentityError(f"`{EVERYBODY}` {words}")
    if spec.expires_us is not None and spec.expires_us <= now_us:
        raise IdentityError("the key would already be expired: choose a later end")
    if spec.residency not in ("any", "internal_only"):
        raise IdentityError(f"`{spec.residency}` is not a residency: any, internal_only")


def _refuse_tags(spec: KeySpec) -> None:
    if not all(_plain(text, TEXT_LIMIT) for tag in spec.tags for text in tag):
        raise IdentityError(f"tags are at most {TEXT_LIMIT} printable characters each")
    if any("=" in name for name, _ in spec.tags):
        raise IdentityError("a tag's name has no `=`: budgets name a tag as `NAME=VALUE`")
    if spec.origin.line is None:  # a rotated key keeps tags from before these rules
        if any(name == BATCH_TAG for name, _ in spec.tags):
            words = "is given by the gateway: each line of a batch bears its batch's id"
            raise IdentityError(f"the tag `{BATCH_TAG}` {words}; choose another name")
        if any(EVERYBODY in tag for tag in spec.tags):
            words = f"no tag has the name or value `{EVERYBODY}`: budgets mean each value by it"
            raise IdentityError(words)
