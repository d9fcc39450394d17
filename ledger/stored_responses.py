"""Stored responses to requests with an `Idempotency-Key`, encrypted by the caller.

A row is found only for the request that it answered, and only until it expires. The ledger writer
then deletes it.
"""

from sqlalchemy import Engine, and_, func, select

from ledger.database import read_value, reading, write_alone
from ledger.idempotency import IdempotencyRecord, forget_expired
from ledger.orm.identity import KeptAnswerRow
from ledger.upserts import insert_of

FORGOTTEN_AT_ONCE = 100  # an answer may be a megabyte


def store_response(
    engine: Engine, asking: IdempotencyRecord, sealed: bytes, *, expires_us: int
) -> None:
    """Store the response, replacing that of an earlier request with the same key."""
    insert = insert_of(engine.dialect)
    row = {
        "request_id": asking.request_id,
        "sealed": sealed,
        "size": len(sealed),
        "expires_us": expires_us,
    }
    kept = (
        insert(KeptAnswerRow)
        .values(key_id=asking.key_id, name=asking.name, **row)
        .on_conflict_do_update(index_elements=["key_id", "name"], set_=row)
    )
    write_alone(engine, kept)


def find_response(engine: Engine, first: IdempotencyRecord, *, now_us: int) -> bytes | None:
    """Return the stored response of this request, or `None` if there is none."""
    query = select(KeptAnswerRow.sealed).where(
        and_(
            KeptAnswerRow.key_id == first.key_id,
            KeptAnswerRow.name == first.name,
            KeptAnswerRow.request_id == first.request_id,
            KeptAnswerRow.expires_us > now_us,
        )
    )
    return read_value(engine, query)


def stored_bytes(engine: Engine) -> int:
    """Return the size of all stored responses together, in bytes."""
    with reading(engine) as connection:
        total = connection.execute(select(func.sum(KeptAnswerRow.size))).scalar_one_or_none()
    return int(total or 0)


def forget_answers(engine: Engine, now_us: int) -> bool:
    """Delete up to `FORGOTTEN_AT_ONCE` expired responses. Return whether there may be more."""
    return forget_expired(engine, KeptAnswerRow, FORGOTTEN_AT_ONCE, now_us)
