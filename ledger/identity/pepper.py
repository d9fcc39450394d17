"""The pepper that keys are hashed with: a file, equal on all hosts of a ledger.

A host with another pepper would answer 401 to keys made elsewhere, and its own keys would work
nowhere else. So the ledger stores a fingerprint of the pepper (63 bits of an HMAC; the pepper has
32 random bytes), and a start or a new key with another pepper fails. Without the pepper its keys
are useless: once all of them are revoked, a new pepper is accepted.
"""

import hmac
from pathlib import Path

from sqlalchemy import Connection, or_, select, update

from ledger.database import database_us
from ledger.identity.keys import IdentityError, load_pepper
from ledger.identity.tokens import PEPPER_FILE
from ledger.orm.identity import KeyRow, MetaRow
from ledger.upserts import insert_into

FINGERPRINT = "pepper_fingerprint"


class PepperMismatch(IdentityError):
    """The keys of this ledger are hashed with another pepper than this state directory's."""


def agreed_pepper(connection: Connection, state_dir: Path) -> bytes:
    """Return the installation's pepper, created if the ledger has no keys in force.

    Raises `PepperMismatch` if the file is missing or differs.
    """
    path = state_dir / PEPPER_FILE
    known = _stored_fingerprint(connection)
    begins = (path.exists() and known is None) or not _keys_in_force(connection)
    if not path.exists() and not begins:
        raise PepperMismatch(
            f"{path} is missing, and the ledger has keys: copy the file from the state directory "
            f"of a host that made them{_OR_BEGIN}"
        )
    pepper = load_pepper(state_dir)
    mine = fingerprint(pepper)
    if begins and known != mine:
        known = _store(connection, known, mine)
    if known != mine:
        raise PepperMismatch(
            f"{path} is not what the keys in the ledger are hashed with, and each of them would "
            f"get 401: copy the file from the state directory of a host that made them{_OR_BEGIN}"
        )
    return pepper


def fingerprint(pepper: bytes) -> int:
    """Return 63 bits that identify a pepper without revealing it."""
    digest = hmac.digest(pepper, FINGERPRINT.encode(), "sha256")
    return int.from_bytes(digest[:8]) >> 1


def _stored_fingerprint(connection: Connection) -> int | None:
    query = select(MetaRow.value).where(MetaRow.name == FINGERPRINT)
    return connection.execute(query).scalar_one_or_none()


def _keys_in_force(connection: Connection) -> bool:
    lasting = or_(KeyRow.expires_us.is_(None), KeyRow.expires_us > database_us(connection))
    query = select(KeyRow.id).where(KeyRow.revoked_us.is_(None), lasting).limit(1)
    return connection.execute(query).first() is not None


def _store(connection: Connection, known: int | None, mine: int) -> int | None:
    """Store the fingerprint unless another host was first. Return the stored one."""
    row = {"name": FINGERPRINT, "value": mine}
    connection.execute(insert_into(connection, MetaRow).on_conflict_do_nothing(), [row])
    same = MetaRow.value == known
    connection.execute(update(MetaRow).where(MetaRow.name == FINGERPRINT, same).values(value=mine))
    return _stored_fingerprint(connection)


_OR_BEGIN = (
    "; is it lost for good, revoke them all (`breakeven keys list`, `keys revoke`), "
    "and new keys begin with a new one"
)
