"""Parts of limits are wide enough for the largest that a configuration may state."""

from sqlalchemy import insert, select

from ledger.orm.rates import RatePartRow

LARGEST = 10**12  # tokens a minute


def test_a_part_holds_the_largest_limit(engine) -> None:
    cells = {"requests": 10**9, "tokens": LARGEST, "kept_requests": 0, "kept_tokens": LARGEST}
    wanted = {"wanted_requests": 0, "wanted_tokens": LARGEST}
    row = {"name": "key:k", "holder": "h", "limit_tokens": LARGEST, **cells, **wanted}
    with engine.begin() as connection:
        connection.execute(insert(RatePartRow), [row])
        found = connection.execute(select(RatePartRow.tokens, RatePartRow.kept_tokens)).one()
    assert tuple(found) == (LARGEST, LARGEST)
