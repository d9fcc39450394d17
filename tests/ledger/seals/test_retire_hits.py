"""Old hits go, and what they came to stays: on pages, and proved."""

import msgspec
import pytest
from sqlalchemy import func, select, text

from ledger.journals.records import CacheHit
from ledger.orm import tables as orm
from ledger.queries.cache_hits import cache_total
from ledger.seals.annex import SealAnnex
from ledger.seals.link_proof import SealMismatch
from ledger.seals.retire_hits import HitRetirer, hits_retired_until_us
from ledger.spans import EVER, HOUR_US, Scope
from ledger.verify.annexes import annexes_hold

HIT = CacheHit(
    "h", 100, "k", None, "search", "acme", "chat", False, "chat", "plain", "openai/x", "api",
    "r0", 5, 10, 3, 70, tags=(("app", "x"),),
)  # fmt: skip
LATER_US = 2**62


@pytest.fixture
def hits(engine, write):
    """Thirty hits of ten hours, of two teams, of which some have no price."""
    write(engine, *(
        msgspec.structs.replace(
            HIT, request_id=f"h{n}", hit_us=n * HOUR_US // 3, engine_us=n,
            team_id="ads" if n % 4 else "search", backend="own" if n % 5 == 0 else "api",
            avoided_pusd=None if n % 7 == 0 else 100 + n,
        ) for n in range(30)
    ))  # fmt: skip
    enter(engine)
    return engine


def enter(engine) -> None:
    while SealAnnex(engine, rows_at_once=8).follow(at_us=9):
        pass


def retire(engine, before_us=LATER_US) -> str:
    while not (step := HitRetirer(engine).step(before_us=before_us, at_us=11)).waits_for:
        assert step.hits
    return step.waits_for


def count(engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(orm.CacheHitRow)).scalar_one()


def totals(engine):
    with engine.connect() as connection:
        return [
            cache_total(connection, Scope(start, end, team))
            for start, end in ((EVER.start_us, EVER.end_us), (HOUR_US, 4 * HOUR_US), (0, HOUR_US))
            for team in (None, "ads", "search", "nobody")
        ]


def findings(engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        return list(annexes_hold(connection))


def test_hits_go_in_whole_entries_and_totals_stay(hits) -> None:
    before = totals(hits)
    assert "not old enough" in retire(hits, 6 * HOUR_US)
    assert count(hits) == 14  # two entries of eight went, of the third a part is young
    assert totals(hits) == before
    assert findings(hits) == []
    assert "newest hits stay" in retire(hits)
    assert (count(hits), totals(hits), findings(hits)) == (6, before, [])


def test_it_is_known_how_far_hits_went(hits) -> None:
    """By whole hours: salvage takes none again that went."""
    with hits.connect() as connection:
        assert hits_retired_until_us(connection) == 0
    retire(hits)
    with hits.connect() as connection:
        assert hits_retired_until_us(connection) == 8 * HOUR_US


def test_new_hits_follow_those_that_went(hits, write) -> None:
    retire(hits)
    write(hits, msgspec.structs.replace(HIT, request_id="new", hit_us=99 * HOUR_US))
    enter(hits)
    assert findings(hits) == []
    retire(hits)
    assert (count(hits), findings(hits)) == (1, [])


EDITS = {
    "a hit": "UPDATE cache_hits SET avoided_pusd = 1 WHERE request_id = 'h28'",
    "a hit that is gone": "DELETE FROM cache_hits WHERE request_id = 'h28'",
    "a hit that came back": "UPDATE cache_hits SET seq = 3 WHERE request_id = 'h28'",
    "a hit below the first": "UPDATE cache_hits SET seq = -3 WHERE request_id = 'h28'",
    "a sum": "UPDATE condensed_hits SET hits = hits + 1 WHERE line = 0",
    "a sum that is gone": "DELETE FROM condensed_hits WHERE line = 0",
    "a sum of no entry": "UPDATE condensed_hits SET number = number + 99",
    "an entry that is gone": "DELETE FROM seal_annexes WHERE number = 2",
    "an entry": "UPDATE seal_annexes SET subject = '1-9' WHERE subject = '1-8'",
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_found(hits, edit) -> None:
    retire(hits)
    assert findings(hits) == []
    with hits.begin() as connection:
        connection.execute(text(EDITS[edit]))
    assert findings(hits)


def test_what_was_edited_does_not_go(hits) -> None:
    with hits.begin() as connection:
        connection.execute(text("UPDATE cache_hits SET avoided_pusd = 1 WHERE request_id = 'h2'"))
    with pytest.raises(SealMismatch, match="cache hits 1-8"):
        retire(hits)
    assert count(hits) == 30
