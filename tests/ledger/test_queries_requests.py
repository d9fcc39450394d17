"""Single attempts: filters, order, limits; one attempt's comparators and decision."""

import pytest

from ledger import queries
from ledger.queries import Scope
from ledger.records import Compared
from ledger.repository import Repository

NOON_US = 1_780_000_000_000_000
SCOPE = Scope(NOON_US, NOON_US + 1_000)


@pytest.fixture
def connection(engine, opened, settled):
    records = []
    for n in range(20):
        records.append(
            opened(
                n,
                team_id="search" if n % 2 else "support",
                spill_reason="ttft" if n % 5 == 0 else None,
                ttft_predicted_us=100_000 + n if n % 3 else None,
            )
        )
        records.append(
            settled(n, compared=(Compared("a/x", 4, n), Compared("b/x", 5, 2 * n, 900_000)))
        )
    Repository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        yield connection


def test_latest_first_and_limited(connection) -> None:
    found = queries.attempts(connection, SCOPE, limit=3)
    assert [row.request_id for row in found] == ["r19", "r18", "r17"]
    row = found[0]
    assert (row.team, row.input_tokens, row.cached_tokens, row.output_tokens) == (
        "search", 12, 2, 5,
    )  # fmt: skip
    assert (row.cost_pusd, row.compared_with, row.compared_pusd) == (400, "a/x", 19)


def test_filters_and_team_scope_narrow(connection) -> None:
    spilled = queries.attempts(connection, SCOPE, where={"spill_reason": "ttft"})
    assert [row.request_id for row in spilled] == ["r15", "r10", "r5", "r0"]
    both = queries.attempts(
        connection, Scope(NOON_US, NOON_US + 12, "search"), where={"spill_reason": "ttft"}
    )
    assert [row.request_id for row in both] == ["r5"]
    assert queries.attempts(connection, SCOPE, where={"team": "nobody"}) == []


def test_an_attempts_comparators_and_decision(connection) -> None:
    assert queries.compared_costs(connection, "r7.1") == [
        queries.Compared("a/x", 0, 1_000_000, 7),
        queries.Compared("b/x", 1, 900_000, 14),
    ]
    assert queries.decision(connection, "r7.1") == b"\x80"
    assert queries.decision(connection, "none") is None


def test_pairs_have_both_times(connection) -> None:
    found = queries.ttft_pairs(connection, SCOPE, limit=4)
    assert [pair.ttft_predicted_us for pair in found] == [100_019, 100_017, 100_016, 100_014]
    assert {pair.ttft_us for pair in found} == {120_000}
