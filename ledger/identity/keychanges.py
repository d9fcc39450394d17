"""Creation, rotation and revocation of keys: each change is a row that is never edited.

The row has author, time and note. A rotation makes another key with the same rights and lets the
old one end some time later, so that programs can change over. Both spend from the same budgets. A
revocation ends a key at once, even a rotated one. The rows are part of the audit log.
"""

from typing import NamedTuple

from sqlalchemy import Connection, func, insert, literal, select, tuple_

from ledger.identity.keys import (
    CreatedKey,
    IdentityError,
    KeySpec,
    add_key,
    bump_generation,
    create_key,
    revoke_key,
)
from ledger.identity.lineage import KeyOrigin, follow
from ledger.orm.identity import KeyChangeRow, KeyRow

MADE, ROTATED, REVOKED = "made", "rotated", "revoked"


_ENDS = (
    select(func.min(KeyChangeRow.ends_us)).where(KeyChangeRow.key_id == KeyRow.id).scalar_subquery()
)
_SELECT = select(
    KeyRow.id,
    KeyRow.name,
    KeyRow.org_id,
    KeyRow.team_id,
    KeyRow.user_id,
    KeyRow.scopes,
    KeyRow.models,
    KeyRow.residency,
    KeyRow.tags,
    KeyRow.created_us,
    KeyRow.expires_us,
    KeyRow.revoked_us,
    _ENDS,
    KeyRow.line,
    KeyRow.makers,
    KeyRow.counts_on,
    KeyRow.member,
)


class ChangeAuthor(NamedTuple):
    by: str
    note: str | None
    at_us: int


class KnownKey(NamedTuple):
    """A key without its hash. `ends_us` is its end after a rotation."""

    id: str
    name: str
    org: str
    team: str
    user: str | None
    scopes: list[str]
    models: list[str] | None
    residency: str
    tags: dict[str, str] | None
    created_us: int
    expires_us: int | None
    revoked_us: int | None
    ends_us: int | None
    line: str | None = None
    makers: list[str] | None = None
    counts_on: list[str] | None = None
    member: str | None = None

    @property
    def origin(self) -> KeyOrigin:
        makers, counts_on = tuple(self.makers or ()), tuple(self.counts_on or ())
        return KeyOrigin(self.line, makers, counts_on, self.member)

    @property
    def line_id(self) -> str:
        """Return the id of the first key of its line of rotations, which names the line."""
        return self.line or self.id

    def state(self, now_us: int) -> str:
        if self.revoked_us is not None:
            return "revoked"
        over = self.over_us
        if over is None:
            return "active"
        return "expired" if over <= now_us else "ending" if over == self.ends_us else "active"

    def is_in_force(self, now_us: int) -> bool:
        return self.state(now_us) in ("active", "ending")

    @property
    def over_us(self) -> int | None:
        """Return when it ends by expiry or rotation, `None` if it does not."""
        return min((us for us in (self.expires_us, self.ends_us) if us is not None), default=None)


def make(
    connection: Connection, spec: KeySpec, author: ChangeAuthor, *, pepper: bytes
) -> CreatedKey:
    """Create a key with `create_key`, and record the author."""
    made = create_key(connection, spec, pepper=pepper, now_us=author.at_us)
    _record_change(connection, made.key_id, MADE, author)
    return made


def make_known(
    connection: Connection, spec: KeySpec, hashed: tuple[str, bytes], author: ChangeAuthor
) -> bool:
    """Add a key whose id and hash are known. Return whether it was missing."""
    key_id, _ = hashed
    if connection.execute(select(KeyRow.id).where(KeyRow.id == key_id)).one_or_none() is not None:
        return False
    add_key(connection, spec, hashed, now_us=author.at_us)
    _record_change(connection, key_id, MADE, author)
    return True


def revoke(
    connection: Connection, key_id: str, author: ChangeAuthor, *, with_made: bool = True
) -> list[str]:
    """Revoke a key with `revoke_key`, and record the author. A second call changes nothing.

    If it was the last key of its line and `with_made` is set, the keys that the line made, directly
    or through others, are revoked as well. Returns their ids. Raises `IdentityError` for an unknown
    key.
    """
    if not revoke_key(connection, key_id, now_us=author.at_us):
        return []
    _record_change(connection, key_id, REVOKED, author)
    gone = find_key(connection, key_id)
    known = known_keys(connection, gone.team)
    alike = (key for key in known if key.line_id == gone.line_id)
    if not with_made or any(key.is_in_force(author.at_us) for key in alike):
        return []
    made = [key.id for key in known if gone.line_id in (key.makers or ()) and not key.revoked_us]
    for each_id in made:
        revoke_key(connection, each_id, now_us=author.at_us)
        with_it = author._replace(note=author.note or f"with {key_id}, which it came from")
        _record_change(connection, each_id, REVOKED, with_it)
    return made


def rotate(
    connection: Connection,
    key_id: str,
    author: ChangeAuthor,
    *,
    pepper: bytes,
    ends_us: int,
    expires_us: int | None = None,
) -> CreatedKey:
    """Create another key with the same rights; the old one ends at `ends_us` or its expiry.

    `expires_us` is the new key's expiry; `None` keeps the old one's. Raises `IdentityError` for a
    key that has ended or has a successor.
    """
    old = find_key(connection, key_id)
    if (state := old.state(author.at_us)) != "active":
        raise IdentityError(
            f"key `{key_id}` is {state}: only an active key can be rotated; make a new "
            "one with `breakeven keys create`"
        )
    spec = KeySpec(
        name=old.name,
        team=old.team,
        org=old.org,
        user=old.user,
        scopes=tuple(old.scopes),
        models=None if old.models is None else tuple(old.models),
        residency=old.residency,
        tags=tuple((old.tags or {}).items()),
        expires_us=old.expires_us if expires_us is None else expires_us,
        origin=follow(old.id, old.origin),
    )
    made = create_key(connection, spec, pepper=pepper, now_us=author.at_us)
    _record_change(connection, made.key_id, MADE, author)
    _record_change(connection, key_id, ROTATED, author, ends_us=ends_us, successor=made.key_id)
    bump_generation(connection)
    return made


def find_key(connection: Connection, key_id: str) -> KnownKey:
    """Return the key with this id. Raises `IdentityError` if there is none."""
    row = connection.execute(_SELECT.where(KeyRow.id == key_id)).one_or_none()
    if row is None:
        raise IdentityError(f"no key has the id `{key_id}`; `breakeven keys list` shows all")
    return KnownKey._make(row)


def known_keys(
    connection: Connection,
    team: str | None = None,
    *,
    after: KnownKey | None = None,
    most: int | None = None,
) -> list[KnownKey]:
    """Return keys in order of creation: of one team, at most `most`, those after `after`."""
    query = _SELECT.order_by(KeyRow.created_us, KeyRow.id).limit(most)
    if team is not None:
        query = query.where(KeyRow.team_id == team)
    if after is not None:
        here = tuple_(KeyRow.created_us, KeyRow.id)
        query = query.where(here > tuple_(literal(after.created_us), literal(after.id)))
    return [KnownKey._make(row) for row in connection.execute(query)]


def teams_of(connection: Connection, user: str) -> set[str]:
    """Return the teams of all keys ever made for this user."""
    return set(connection.execute(select(KeyRow.team_id).where(KeyRow.user_id == user)).scalars())


def _record_change(
    connection: Connection,
    key_id: str,
    event: str,
    author: ChangeAuthor,
    *,
    ends_us: int | None = None,
    successor: str | None = None,
) -> None:
    connection.execute(
        insert(KeyChangeRow).values(
            key_id=key_id, event=event, ends_us=ends_us, successor=successor,
            actor=author.by, note=author.note, recorded_us=author.at_us,
        )
    )  # fmt: skip
