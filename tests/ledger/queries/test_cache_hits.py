"""Hits add up by team, and what they avoided is in no sum of spending."""

import msgspec

from ledger.journals.records import CacheHit
from ledger.queries.cache_hits import CacheTotal, cache_total, find_hit
from ledger.queries.requests import attempts
from ledger.spans import EVER, Scope

HIT = CacheHit(
    "r1", 100, "k", None, "search", "acme", "chat", False, "chat", "plain", "openai/x", "api",
    "r0", 5, 10, 3, 70, tags=(("app", "x"),),
)  # fmt: skip


def hit(number: int, **changes: object) -> CacheHit:
    return msgspec.structs.replace(HIT, request_id=f"r{number}", **changes)


def test_hits_add_up_by_team_and_a_record_is_applied_once(engine, opened, settled, write) -> None:
    own = hit(4, backend="own", avoided_pusd=9, engine_us=2_000)
    write(
        engine, opened(9), settled(9), hit(1), hit(1), hit(2, avoided_pusd=None),
        hit(3, team_id="other", model="c\0hat"), own,
    )  # fmt: skip
    with engine.connect() as connection:
        assert cache_total(connection, EVER) == CacheTotal(4, 140, 1, 2_000)
        other = Scope(EVER.start_us, EVER.end_us, "other")
        assert cache_total(connection, other) == CacheTotal(1, 70, 0, 0)
        assert cache_total(connection, Scope(0, 100)) == CacheTotal(0, 0, 0, 0)
        assert [row.attempt_id for row in attempts(connection, EVER)] == ["r9.1"]
        row = find_hit(connection, "r3", "other")
        assert row is not None
        assert (row.model, row.tags, row.answered_by) == ("c\ufffdhat", {"app": "x"}, "r0")
        assert find_hit(connection, "r3", "search") is None
