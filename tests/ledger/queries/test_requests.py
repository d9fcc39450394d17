"""Single attempts: filters, order, limits; one attempt's comparators and decision."""

import pytest
from msgspec.structs import replace

from ledger.journals.records import ComparedCost, TokenCounts
from ledger.queries import reads as queries
from ledger.queries import requests
from ledger.queries.reads import Scope
from ledger.writing.repository import LedgerRepository

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
            settled(n, compared=(ComparedCost("a/x", 4, n), ComparedCost("b/x", 5, 2 * n, 900_000)))
        )
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
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


def test_the_dearest_first_and_without_a_cost_last(engine, opened, settled) -> None:
    """Whoever asks which requests made a day dear does not find them among the latest."""
    records = []
    for n, cost in enumerate((7, None, 900, 40, 900)):
        records += [opened(n), settled(n, cost_pusd=cost)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        found = queries.attempts(connection, SCOPE, dearest=True)
        first = queries.attempts(connection, SCOPE, dearest=True, limit=1)
    assert [row.cost_pusd for row in found] == [900, 900, 40, 7, None]
    assert [row.request_id for row in (*found[:2], *first)] == ["r4", "r2", "r4"]


def test_filters_and_team_scope_narrow(connection) -> None:
    spilled = queries.attempts(connection, SCOPE, where={"spill_reason": "ttft"})
    assert [row.request_id for row in spilled] == ["r15", "r10", "r5", "r0"]
    both = queries.attempts(
        connection, Scope(NOON_US, NOON_US + 12, "search"), where={"spill_reason": "ttft"}
    )
    assert [row.request_id for row in both] == ["r5"]
    assert queries.attempts(connection, SCOPE, where={"team": "nobody"}) == []


def test_a_target_was_charged_by_its_latest_priced_answers_version(engine, opened, settled) -> None:
    versions = ((0, "a/x", 4), (1, "a/x", 6), (2, "a/x", None), (3, "b/x", None), (90, "a/x", 9))
    records = []
    for n, target, version in versions:
        attempt = replace(opened(n), opened_us=NOON_US + n, target=target, price_version=version)
        records += [attempt, settled(n)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    within = Scope(NOON_US, NOON_US + 50)
    with engine.connect() as connection:
        found = requests.charged_by(connection, within, ("a/x", "b/x", "never/asked"))
    assert found == {"a/x": 6}


def test_an_attempts_comparators_and_decision(connection) -> None:
    assert queries.compared_costs(connection, "r7.1") == [
        queries.AttemptComparison("a/x", 0, 1_000_000, 7),
        queries.AttemptComparison("b/x", 1, 900_000, 14),
    ]
    assert queries.decision(connection, "r7.1") == b"\x80"
    assert queries.decision(connection, "none") is None


def test_pairs_have_both_times(connection) -> None:
    found = queries.ttft_pairs(connection, SCOPE, limit=4)
    assert [pair.ttft_predicted_us for pair in found] == [100_019, 100_017, 100_016, 100_014]
    assert {pair.ttft_us for pair in found} == {120_000}


def test_what_was_kept_is_of_the_latest_that_had_a_promise(engine, opened, settled) -> None:
    records = []
    for n in range(12):
        records.append(opened(n, policy="calm" if n % 3 else "rest"))
        changes = {"status": "upstream_error"} if n == 11 else {}
        records.append(settled(n, slo_met=None if n == 10 else n != 7, **changes))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        found = queries.slo_attainment(connection, SCOPE, limit=5)  # 9, 8, 7, 6, 5
        every = queries.slo_attainment(connection, SCOPE, limit=100)
    assert found == [queries.SloAttainment("calm", 3, 2), queries.SloAttainment("rest", 2, 2)]
    assert every == [queries.SloAttainment("calm", 6, 5), queries.SloAttainment("rest", 4, 4)]


def test_streams_of_each_engine_are_the_latest(engine, opened, settled) -> None:
    records = []
    for n in range(24):
        name = f"pool:p/{n % 2}"
        own = {"target": name, "backend": "own", "pool": "p", "engine": name[-1]}
        records.append(opened(n, **own, stream=n != 21))
        changes = {"status": "client_gone"} if n == 20 else {}
        tokens = TokenCounts(input=10, output=1 if n == 18 else 5)
        records.append(settled(n, ttft_us=100, duration_us=100 + 4 * n, tokens=tokens, **changes))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=NOON_US)
    with engine.connect() as connection:
        found = queries.streamed(connection, SCOPE, ["pool:p/0", "pool:p/1", "none"], limit=3)
    assert [
        (finding.opened_us - NOON_US, finding.engine, finding.tpot_us) for finding in found
    ] == [
        (16, "pool:p/0", 16),
        (17, "pool:p/1", 17),
        (18, "pool:p/0", None),
        (19, "pool:p/1", 19),
        (22, "pool:p/0", 22),
        (23, "pool:p/1", 23),
    ]
    assert {finding.ttft_us for finding in found} == {100}
