"""Claims of an `Idempotency-Key`: one row, owned by the first request that uses the key.

The database decides between workers and hosts, and the row survives restarts. A row is claimed
before anything is dispatched. Only the request that claimed it frees it, and only if nothing can
have been charged. An `Idempotency-Key` therefore leads to at most one charge, whichever process
dies.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine, and_, delete, select, tuple_

from ledger.database import reading, write_alone
from ledger.orm.identity import KeptAnswerRow, SubmissionRow
from ledger.upserts import insert_of

FORGOTTEN_AT_ONCE = 1_000
TRIES = 3  # the row may be freed between two tries


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """A request with an `Idempotency-Key`; `digest` is the hash of its path and body."""

    key_id: str
    name: str
    digest: bytes
    request_id: str


def claim_key(
    engine: Engine, asking: IdempotencyRecord, *, now_us: int, expires_us: int
) -> IdempotencyRecord:
    """Claim the key. Return `asking` if it was free, else the request that owns it.

    Raises `TimeoutError` if the key was claimed and freed by others during each of `TRIES` tries.
    """
    for _ in range(TRIES):
        with engine.begin() as connection:
            first = try_claim(connection, asking, now_us=now_us, expires_us=expires_us)
        if first is not None:
            return first
    raise TimeoutError("an idempotency key is taken and freed again and again")


def try_claim(
    connection: Connection, asking: IdempotencyRecord, *, now_us: int, expires_us: int
) -> IdempotencyRecord | None:
    """Claim like `claim_key`, in a transaction. Return `None` if the row was freed meanwhile."""
    insert = insert_of(connection.dialect)
    row = {
        "digest": asking.digest,
        "request_id": asking.request_id,
        "expires_us": expires_us,
    }
    claim = (
        insert(SubmissionRow)
        .values(key_id=asking.key_id, name=asking.name, **row)
        .on_conflict_do_update(
            index_elements=["key_id", "name"], set_=row, where=SubmissionRow.expires_us <= now_us
        )
        .returning(SubmissionRow.request_id)
    )
    if connection.execute(claim).one_or_none() is not None:
        return asking
    return _find_claim(connection, asking.key_id, asking.name)


def find_claim(engine: Engine, key_id: str, name: str, *, now_us: int) -> IdempotencyRecord | None:
    """Return the earlier request that owns this key, or `None` if there is none or it expired."""
    with reading(engine) as connection:
        return _find_claim(connection, key_id, name, now_us)


def _find_claim(
    connection: Connection, key_id: str, name: str, now_us: int = 0
) -> IdempotencyRecord | None:
    query = select(SubmissionRow.digest, SubmissionRow.request_id).where(
        SubmissionRow.key_id == key_id,
        SubmissionRow.name == name,
        SubmissionRow.expires_us > now_us,
    )
    first = connection.execute(query).one_or_none()
    return None if first is None else IdempotencyRecord(key_id, name, first[0], first[1])


def free_key(engine: Engine, asking: IdempotencyRecord) -> None:
    """Delete the row if this request owns it."""
    mine = and_(
        SubmissionRow.key_id == asking.key_id,
        SubmissionRow.name == asking.name,
        SubmissionRow.request_id == asking.request_id,
    )
    write_alone(engine, delete(SubmissionRow).where(mine))


def forget_keys(engine: Engine, now_us: int) -> bool:
    """Delete up to `FORGOTTEN_AT_ONCE` expired rows. Return whether there may be more."""
    return forget_expired(engine, SubmissionRow, FORGOTTEN_AT_ONCE, now_us)


def forget_expired(
    engine: Engine, table: type[SubmissionRow | KeptAnswerRow], at_once: int, now_us: int
) -> bool:
    """Delete up to `at_once` expired rows of a table. Return whether there may be more."""
    place = (table.key_id, table.name)
    over = table.expires_us <= now_us
    some = select(*place).where(over).order_by(*place).limit(at_once)
    # The expiry is checked again for each row: a row that was claimed anew must not be deleted.
    old = delete(table).where(tuple_(*place).in_(some), over)
    return write_alone(engine, old) >= at_once
