"""How a span is cut into days, hours and ends; sums of no use are left alone."""

import pytest
from sqlalchemy import insert, select

from ledger import orm
from ledger.queries_rollups import BEHIND, Parts, Rolled, parts_of, rolled, settle_on
from ledger.queries_scope import DAY_US, EVER, HOUR_US, MINUTE_US, Scope

HERE = Rolled(9, 1)
D, H, M = DAY_US, HOUR_US, MINUTE_US


@pytest.mark.parametrize(
    ("span", "bucket", "parts"),
    [
        ((D, 3 * D), D, Parts(((D, 3 * D),), (), ())),
        ((D, 3 * D), 6 * H, Parts((), ((D, 3 * D),), ())),
        ((D - H, 2 * D + 5 * H + 7), D, Parts(
            ((D, 2 * D),), ((D - H, D), (2 * D, 2 * D + 5 * H)),
            ((2 * D + 5 * H, 2 * D + 5 * H + 7),),
        )),
        ((D + 1, D + 2 * H), D, Parts((), ((D + H, D + 2 * H),), ((D + 1, D + H),))),
        ((D + 1, D + H), D, None),
        ((D, 3 * D), 10 * M, None),
    ],
)  # fmt: skip
def test_a_span_is_cut(span, bucket, parts) -> None:
    assert parts_of(Scope(*span), HERE, bucket) == parts
    assert parts_of(Scope(*span), None, bucket) is None


def test_all_time_is_days() -> None:
    parts = parts_of(EVER, HERE)
    assert parts is not None
    assert parts.days[0][0] == 0
    assert parts.edges[-1][1] == EVER.end_us


def test_sums_far_behind_are_of_no_use(engine, opened, write) -> None:
    write(engine, opened(1))
    with engine.connect() as connection:
        assert rolled(connection) is None
    with engine.begin() as connection:
        connection.execute(
            insert(orm.RollupPosition), [{"name": "attempts", "seq": 1, "version": 3}]
        )
        assert rolled(connection) == Rolled(1, 3)
        last = connection.execute(select(orm.Attempt)).mappings().one()
        row = {column.name: value for column, value in zip(
            orm.Attempt.__table__.columns, tuple(last.values()), strict=True)}  # fmt: skip
        far = {"seq": 2 + BEHIND, "attempt_id": "x.1", "request_id": "x"}
        connection.execute(insert(orm.Attempt.__table__), [row | far])
        assert rolled(connection) is None


def test_what_moved_on_meanwhile_is_read_again(engine) -> None:
    seen = []
    with engine.begin() as connection:
        connection.execute(
            insert(orm.RollupPosition), [{"name": "attempts", "seq": 1, "version": 1}]
        )

        def read(here):
            seen.append(here)
            if len(seen) < 3:
                version = orm.RollupPosition.__table__.update().values(version=1 + len(seen))
                connection.execute(version)
            return len(seen)

        assert settle_on(connection, read) == 3
    assert [here.version for here in seen] == [1, 2, 3]
