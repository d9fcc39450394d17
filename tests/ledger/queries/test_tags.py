"""Spend by tag on both databases: each tag of an attempt counts."""

from sqlalchemy import delete, insert, update

from ledger.orm.tables import (
    AttemptRow,
    KeyRow,
    OrganisationRow,
    RetirementRow,
    RollupKeyDayRow,
    RollupKeyHourRow,
    RollupTaggingRow,
    TeamRow,
)
from ledger.queries import requests
from ledger.queries.tags import (
    KeySpend,
    attempts_of_key,
    key_names,
    keyed,
    spent_by_key,
    tagged,
    whole_from_us,
)
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.sums.rollups import Rollups
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US


def test_each_tag_of_an_attempt_counts(engine, opened, settled) -> None:
    records = []
    for n, tags in enumerate(((), (("app", "web"),), (("app", "web"), ("env", "dev")))):
        records.append(opened(n, tags=tags))
        records.append(settled(n, cost_pusd=10**n))
    LedgerRepository(engine, host="h").import_records(records, journal="history", at_us=5)
    with engine.connect() as connection:
        found = {cost.tag: cost for cost in tagged(connection, Scope(0, 2**62))}
        assert tagged(connection, Scope(0, 1)) == []
    assert {tag: (finding.attempts, finding.cost_pusd) for tag, finding in found.items()} == {
        "app=web": (2, 110), "env=dev": (1, 100),
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(update(AttemptRow).values(tags=None))
        assert tagged(connection, Scope(0, 2**62)) == []


def summed(engine, records, seal_all) -> Scope:
    """The day of records that are in the books and in their sums."""
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=START_US)
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    return Scope(START_US, START_US + DAY_US)


def test_what_is_added_up_is_read_from_sums_alone(engine, opened, settled, seal_all) -> None:
    records = [cost for n in range(3) for cost in (
        opened(n, opened_us=START_US + n * HOUR_US, tags=(("app", "web"),), holds=()),
        settled(n, settled_us=START_US + n * HOUR_US, cost_pusd=10**13 + n),
    )]  # fmt: skip
    scope = summed(engine, records, seal_all)
    with engine.begin() as connection:
        wanted = tagged(connection, scope)
        assert [(wanted_value.attempts, wanted_value.cost_pusd) for wanted_value in wanted] == [
            (3, 3 * 10**13 + 3)
        ]
        connection.execute(update(AttemptRow).values(tags=None))
        assert tagged(connection, scope) == wanted
        connection.execute(update(RollupTaggingRow).values(from_us=scope.start_us + 1))
        assert tagged(connection, scope) == []  # kept since later: the rows are asked


def test_each_key_of_a_team_by_backend_from_rows_and_from_sums_alike(
    engine, opened, settled, seal_all
) -> None:
    asked = (("k1", "api", 10**13 + 1), ("k2", "api", 5), ("k1", "own", 7), ("k1", "api", None))
    records = [cost for n, (key, backend, pusd) in enumerate(asked) for cost in (
        opened(n, opened_us=START_US + n * HOUR_US, key_id=key, backend=backend, holds=()),
        settled(n, settled_us=START_US + n * HOUR_US, cost_pusd=pusd),
    )]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=START_US)
    scope = Scope(START_US, START_US + DAY_US)

    def found() -> tuple[list[KeySpend], list[tuple[str, int]]]:
        with engine.connect() as connection:
            spent = spent_by_key(connection, scope, DAY_US)
            return keyed(connection, scope), [(amount.name, amount.cost_pusd) for amount in spent]

    by_rows = found()
    assert [(cost.key_id, cost.backend, cost.attempts, cost.cost_pusd, cost.unpriced)
            for cost in by_rows[0]] == [
        ("k1", "api", 2, 10**13 + 1, 1), ("k1", "own", 1, 7, 0), ("k2", "api", 1, 5, 0),
    ]  # fmt: skip
    assert by_rows[1] == [("k1", 10**13 + 8), ("k2", 5)]
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    assert found() == by_rows
    with engine.begin() as connection:
        connection.execute(update(AttemptRow).values(key_id="another"))
    assert found() == by_rows
    with engine.connect() as connection:
        assert keyed(connection, Scope(scope.start_us, scope.end_us, "nobody")) == []


def test_single_tries_of_a_key_are_read_from_its_hours_alone(
    engine, opened, settled, seal_all, monkeypatch
) -> None:
    """Twenty hours of two keys, one of which asks in three of them, of another team."""
    asked = [("k2", "rare") if n in (3, 9, 15) else ("k1", "usual") for n in range(20)]
    records = [cost for n, (key, team) in enumerate(asked) for cost in (
        opened(n, opened_us=START_US + n * HOUR_US, key_id=key, team_id=team,
               target=f"t{n % 2}", holds=()),
        settled(n, settled_us=START_US + n * HOUR_US, cost_pusd=n),
    )]  # fmt: skip
    scope = summed(engine, records, seal_all)
    spans, read = [], requests.attempts

    def spied(connection, within, **how):
        spans.append((within.start_us, within.end_us, within.team))
        return read(connection, within, **how)

    monkeypatch.setattr(requests, "attempts", spied)

    def found(
        key: str, most: int = 200, of: Scope = scope, dearest: bool = False, **where: str
    ) -> list[int | None]:
        with engine.connect() as connection:
            rows = attempts_of_key(connection, of, key, where=where, limit=most, dearest=dearest)
        return [row.cost_pusd for row in rows]

    assert found("k2") == [15, 9, 3]
    assert found("k2", most=2) == [15, 9]
    assert found("k2", most=1, target="t1") == [15], "where more is asked for, all its hours"
    assert found("k1", of=Scope(START_US, START_US + 5 * HOUR_US, "usual")) == [4, 2, 1, 0]
    assert found("k1", of=Scope(START_US, START_US + DAY_US, "rare")) == found("none") == []
    hour = [START_US + n * HOUR_US for n in range(21)]
    assert spans[:3] == [
        (hour[3], hour[16], "rare"), (hour[9], hour[16], "rare"), (hour[3], hour[16], "rare"),
    ]  # fmt: skip
    assert found("k1", most=2, dearest=True) == sorted(found("k1"), reverse=True)[:2]


def test_after_an_upgrade_rows_say_what_no_sum_by_key_has(
    engine, opened, settled, seal_all
) -> None:
    """Migration 0041 begins sums by key anew: what was asked before it is read as it was."""
    records = [item for n in range(4) for item in (
        opened(n, opened_us=START_US + n * HOUR_US, key_id=f"k{n % 2}", holds=()),
        settled(n, settled_us=START_US + n * HOUR_US, cost_pusd=10**13 + n),
    )]  # fmt: skip
    scope = summed(engine, records, seal_all)

    def found() -> tuple[object, ...]:
        with engine.connect() as connection:
            single = attempts_of_key(connection, scope, "k1", where={}, limit=9)
            spent = spent_by_key(connection, scope, DAY_US)
            return keyed(connection, scope), spent, [member.request_id for member in single]

    whole = found()
    assert len(whole[2]) == 2
    with engine.begin() as connection:
        for table in (RollupTaggingRow, RollupKeyHourRow, RollupKeyDayRow):
            connection.execute(delete(table))
    assert found() == whole


def test_sums_by_key_lack_what_was_retired_before_they_began(
    engine, opened, settled, seal_all
) -> None:
    records = [opened(1, opened_us=START_US, holds=()), settled(1, settled_us=START_US)]
    summed(engine, records, seal_all)
    gone_us = START_US - 9 * DAY_US

    def whole() -> int:
        with engine.connect() as connection:
            return whole_from_us(connection)

    assert whole() == 0
    with engine.begin() as connection:
        connection.execute(insert(RetirementRow).values(
            number=1, part=0, ends=True, retired_us=START_US, until_us=gone_us, attempts=1,
            posted=1, input_tokens=1, output_tokens=1, engine_us=0, cost_pusd=1, gone=b"",
            left_rows=0, left=b"", chain=b"",
        ))  # fmt: skip
    assert whole() == 0, "sums have it, for they were kept when it went"
    with engine.begin() as connection:
        connection.execute(update(RollupTaggingRow).values(from_us=START_US))
    assert whole() == gone_us, "since then every attempt is there to be read"
    with engine.begin() as connection:
        connection.execute(update(RollupTaggingRow).values(from_us=gone_us - DAY_US))
    assert whole() == gone_us - DAY_US
    with engine.begin() as connection:
        connection.execute(delete(RollupTaggingRow))
    assert whole() == gone_us


def test_a_key_is_called_by_its_name_among_its_teams(engine) -> None:
    with engine.begin() as connection:
        connection.execute(insert(OrganisationRow).values(id="o", name="O", created_us=0))
        connection.execute(insert(TeamRow).values(id="t", org_id="o", name="T", created_us=0))
        connection.execute(insert(KeyRow).values(
            id="k9", secret_hash=b"x" * 32, name="nightly", org_id="o", team_id="t", scopes=[],
            created_us=0,
        ))  # fmt: skip
        assert key_names(connection, None)["k9"] == key_names(connection, "t")["k9"] == "nightly"
        assert key_names(connection, "another") == {}
