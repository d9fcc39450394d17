"""How a span is cut into days, hours and ends; sums of no use are left alone."""

import pytest
from sqlalchemy import insert, select, update

from ledger.orm import tables as orm
from ledger.queries.rollups import (
    BEHIND,
    RollupProgress,
    SpanTiers,
    parts_of,
    read_consistently,
    rollup_progress,
)
from ledger.spans import DAY_US, EVER, HOUR_US, MINUTE_US, Scope
from ledger.sums.rollup import QUARTER_US, WEEK_US

HERE = RollupProgress(9, 1)
D, H, M = DAY_US, HOUR_US, MINUTE_US
W, Q = WEEK_US, QUARTER_US


@pytest.mark.parametrize(
    ("span", "bucket", "parts"),
    [
        ((D, 3 * D), D, SpanTiers(((D, ((D, 3 * D),)),), ())),
        ((D, 3 * D), 6 * H, SpanTiers(((H, ((D, 3 * D),)),), ())),
        ((D - H, 2 * D + 5 * H + 7), D, SpanTiers(
            ((D, ((D, 2 * D),)), (H, ((D - H, D), (2 * D, 2 * D + 5 * H)))),
            ((2 * D + 5 * H, 2 * D + 5 * H + 7),),
        )),
        ((D + 1, D + 2 * H), D, SpanTiers(((H, ((D + H, D + 2 * H),)),), ((D + 1, D + H),))),
        ((D + 1, D + H), D, None),
        ((D, 3 * D), 10 * M, None),
    ],
)  # fmt: skip
def test_a_span_is_cut(span, bucket, parts) -> None:
    assert parts_of(Scope(*span), HERE, bucket) == parts
    assert parts_of(Scope(*span), None, bucket) is None


@pytest.mark.parametrize(
    ("packed_us", "bucket", "tiers"),
    [
        (0, None, {D: [(W - D, 3 * W + D)], H: [(W - D - 7 * H, W - D)]}),
        (W - D, None, {D: [(W - D, 3 * W + D)], Q: [(W - D - Q, W - D)],
                       H: [(W - D - 7 * H, W - D - Q)]}),
        (3 * W - H, None, {W: [(W, 2 * W)], D: [(W - D, W), (2 * W, 3 * W + D)],
                           Q: [(W - D - Q, W - D)], H: [(W - D - 7 * H, W - D - Q)]}),
        (3 * W, D, {D: [(W - D, 3 * W + D)], Q: [(W - D - Q, W - D)],
                    H: [(W - D - 7 * H, W - D - Q)]}),
        (3 * W, Q, {Q: [(W - D - Q, 3 * W)], H: [(W - D - 7 * H, W - D - Q), (3 * W, 3 * W + D)]}),
        (3 * W, H, {H: [(W - D - 7 * H, 3 * W + D)]}),
    ],
)  # fmt: skip
def test_coarser_sums_are_read_as_far_as_they_are_made(packed_us, bucket, tiers) -> None:
    parts = parts_of(
        Scope(W - D - 7 * H, 3 * W + D), RollupProgress(9, 1, packed_us=packed_us), bucket
    )
    assert parts is not None
    assert {width: list(spans) for width, spans in parts.tiers} == tiers
    assert sum(end - start for start, end in parts.within) == 2 * W + 2 * D + 7 * H


@pytest.mark.parametrize(
    ("newest_us", "after", "edges"),
    [
        (None, (), ((D, D + 40 * M),)),
        (D + 40 * M - 1, ((D + 40 * M, D + H),), ()),
        (D + 50 * M, ((D + 40 * M, D + H),), ()),  # ten minutes to take off, forty to read
        (D + H, (), ((D, D + 40 * M),)),  # it is not the newest hour: more may have been retired
    ],
)
def test_the_newest_hour_is_taken_whole_where_that_reads_less(newest_us, after, edges) -> None:
    parts = parts_of(Scope(0, D + 40 * M), RollupProgress(9, 1, newest_us), D)
    assert parts is not None
    assert (parts.after, parts.edges) == (after, edges)
    assert max(end for _, end in parts.within) == (D + 40 * M if after else D)
    assert (
        parts_of(Scope(0, 10 * M), RollupProgress(9, 1, 30 * M)) is None
    )  # ten to read, twenty to take
    open_hour = parts_of(Scope(0, 10 * M), RollupProgress(9, 1, 5 * M))
    assert open_hour is not None
    assert open_hour.within == ((0, 10 * M),)


def test_all_time_is_days() -> None:
    parts = parts_of(EVER, HERE)
    assert parts is not None
    assert parts.tiers[0][:2] == (D, parts.tiers[0][1])
    assert parts.tiers[0][1][0][0] == 0
    assert parts.edges[-1][1] == EVER.end_us


def test_sums_far_behind_are_of_no_use(engine, opened, write) -> None:
    write(engine, opened(1))
    with engine.connect() as connection:
        assert rollup_progress(connection) is None
    with engine.begin() as connection:
        connection.execute(
            insert(orm.RollupPositionRow), [{"name": "attempts", "seq": 1, "version": 3}]
        )
        newest_us = connection.execute(select(orm.AttemptRow.opened_us)).scalar_one()
        assert rollup_progress(connection) == RollupProgress(1, 3, newest_us)
        packing = {"name": "attempts", "version": 3, "until_us": 5, "calm": 1}
        connection.execute(insert(orm.RollupPackingRow), [packing])
        assert rollup_progress(connection) == RollupProgress(1, 3, newest_us, 5)
        connection.execute(update(orm.RollupPackingRow).values(version=2))
        assert rollup_progress(connection) == RollupProgress(
            1, 3, newest_us
        )  # somebody moved the sums alone
        last = connection.execute(select(orm.AttemptRow)).mappings().one()
        row = {column.name: value for column, value in zip(
            orm.AttemptRow.__table__.columns, tuple(last.values()), strict=True)}  # fmt: skip
        far = {"seq": 2 + BEHIND, "attempt_id": "x.1", "request_id": "x"}
        connection.execute(insert(orm.AttemptRow.__table__), [row | far])
        assert rollup_progress(connection) is None


def test_what_moved_on_meanwhile_is_read_again(engine) -> None:
    seen = []
    with engine.begin() as connection:
        connection.execute(
            insert(orm.RollupPositionRow), [{"name": "attempts", "seq": 1, "version": 1}]
        )

        def read(here):
            seen.append(here)
            if len(seen) < 3:
                version = orm.RollupPositionRow.__table__.update().values(version=1 + len(seen))
                connection.execute(version)
            return len(seen)

        assert read_consistently(connection, read) == 3
    assert [here.version for here in seen] == [1, 2, 3]
