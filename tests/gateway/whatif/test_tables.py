"""Rows and notes of a what-if."""

from gateway.whatif.tables import notes, tables


def test_the_tables_have_a_row_for_each_set(busy) -> None:
    found = tables(busy)
    assert [len(rows) for _, _, rows in found][:2] == [2, 2]
    assert all(len(row) == len(columns) for _, columns, rows in found for row in rows)
    assert any("assumed" in line for line in notes(busy))
    assert found[-1][0].startswith(f"{busy['disagreement']['moved']:,} requests")


def test_what_is_not_known_is_said(busy) -> None:
    first, second = busy["results"]
    dollars = {**first["dollars"], "fixed_unknown_pools": ["chat"], "api_unpriced_requests": 3}
    lacking = {**busy, "results": [{**first, "dollars": dollars}, second]}
    assert "pools.NAME.gpu.usd_per_hour" in " ".join(notes(lacking))
    assert "up to 3 requests" in " ".join(notes(lacking))
    assert tables(lacking)[0][2][0][1].endswith("+?")
