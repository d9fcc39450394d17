"""Answers that are kept for an `Idempotency-Key`, as their keeper sealed them: bytes to this file.

A row is found only for the request that it answered, and only until it expires; then the ledger
writer deletes it.
"""

from sqlalchemy import Engine, and_, delete, func, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from ledger.database import reading
from ledger.orm.identity import KeptAnswer
from ledger.submissions import Asking

FORGOTTEN_AT_ONCE = 100  # an answer may be a megabyte


def keep(engine: Engine, asking: Asking, sealed: bytes, *, expires_us: int) -> None:
    """In place of what an earlier request of the same name left."""
    insert = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    row = {
        "request_id": asking.request_id,
        "sealed": sealed,
        "size": len(sealed),
        "expires_us": expires_us,
    }
    kept = (
        insert(KeptAnswer)
        .values(key_id=asking.key_id, name=asking.name, **row)
        .on_conflict_do_update(index_elements=["key_id", "name"], set_=row)
    )
    with engine.begin() as connection:
        connection.execute(kept)


def find(engine: Engine, first: Asking, *, now_us: int) -> bytes | None:
    """What was kept of this request's answer."""
    query = select(KeptAnswer.sealed).where(
        and_(
            KeptAnswer.key_id == first.key_id,
            KeptAnswer.name == first.name,
            KeptAnswer.request_id == first.request_id,
            KeptAnswer.expires_us > now_us,
        )
    )
    with reading(engine) as connection:
        return connection.execute(query).scalar_one_or_none()


def kept_bytes(engine: Engine) -> int:
    """Of all answers together."""
    with reading(engine) as connection:
        total = connection.execute(select(func.sum(KeptAnswer.size))).scalar_one_or_none()
    return int(total or 0)


def forget_answers(engine: Engine, now_us: int) -> bool:
    """Delete some that expired; whether there may be more."""
    place = (KeptAnswer.key_id, KeptAnswer.name)
    over = KeptAnswer.expires_us <= now_us
    some = select(*place).where(over).order_by(*place).limit(FORGOTTEN_AT_ONCE)
    # Asked again of each row: one that was kept anew meanwhile is not deleted.
    old = delete(KeptAnswer).where(tuple_(*place).in_(some), over)
    with engine.begin() as connection:
        return connection.execute(old).rowcount >= FORGOTTEN_AT_ONCE
