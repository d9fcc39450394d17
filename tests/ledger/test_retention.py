"""One call drops all that is over its days, and nothing where no days are said."""

import msgspec
import pytest
from sqlalchemy import func, select

from ledger.journals.records import CacheHit
from ledger.orm import tables as orm
from ledger.retention import Retention, retire_old
from ledger.seals.annex import SealAnnex
from ledger.spans import DAY_US
from ledger.sums.rollups import Rollups
from ledger.verify.checks import verify

NOW_US = 1_790_000_000_000_000
HIT = CacheHit(
    "h", 100, "k", None, "search", "acme", "chat", False, "chat", "plain", "openai/x", "api",
    "r0", 5, 10, 3, 70,
)  # fmt: skip


def counts(engine) -> tuple[int, ...]:
    with engine.connect() as connection:
        assert verify(connection).findings == ()
        return tuple(
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (orm.AttemptRow, orm.CacheHitRow, orm.RefusalRow)
        )


@pytest.mark.parametrize("kept", [Retention(), Retention(35), Retention(None, 35)])
async def test_what_is_over_its_days_goes(
    engine, make_random_ledger, write, seal_all, kept
) -> None:
    random = make_random_ledger(3, 40)
    random.adjusted = {}  # postings of invoices that are not there
    random.fill(engine)
    write(engine, *(
        msgspec.structs.replace(HIT, request_id=f"h{n}", hit_us=n * DAY_US) for n in range(3)
    ))  # fmt: skip
    for follower in (
        lambda: SealAnnex(engine, rows_at_once=2).follow(at_us=7),
        Rollups(engine).follow,
    ):
        seal_all(engine, rows_at_once=15)
        while follower():
            pass
    before = counts(engine)
    assert before[1] == 3
    await retire_old(engine, kept, now_us=NOW_US)
    after = counts(engine)
    if kept.attempts_days is None:
        assert after == before
    else:
        assert after[0] < before[0] / 2
        assert after[1] == 1
