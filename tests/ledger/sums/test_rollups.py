"""Sums follow the rows exactly: late, lost, corrected, in any steps, killed anywhere, made anew."""

import random

import pytest
from sqlalchemy import delete, event, func, insert, select, update

from ledger.economics.cost import TokenBasis
from ledger.journals.records import ComparedCost, TokenCounts
from ledger.orm import tables as orm
from ledger.queries import reads as queries
from ledger.queries.load import loads
from ledger.queries.reads import DAY_US, HOUR_US, MINUTE_US, Scope
from ledger.queries.rollups import rollup_progress
from ledger.queries.tags import spent_by_hour, tagged
from ledger.reports.facts import facts, flagged, home_pools, moments
from ledger.sums.rollup import MOST_PRODUCT
from ledger.sums.rollups import Rollups
from ledger.writing.repository import LedgerRepository

START_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % DAY_US
DAYS = 9  # from a Thursday on: a whole week, and two days beyond
SCOPES = (
    Scope(START_US, START_US + DAYS * DAY_US),
    Scope(START_US + 5 * HOUR_US, START_US + 2 * DAY_US + 100 * MINUTE_US + 7),
    Scope(START_US + 7 * MINUTE_US, START_US + 9 * HOUR_US + 1, "ads"),
    Scope(START_US + 61 * MINUTE_US, START_US + 110 * MINUTE_US),
)


@pytest.fixture
def stream(opened, settled):
    """Opens and settles in the order in which they come; some settles long after, some never."""

    def make(seed: int, count: int):
        rng = random.Random(seed)
        found = []
        for n in range(count):
            own, at = rng.random() < 0.6, START_US + rng.randrange(DAYS * DAY_US)
            first = opened(
                n, opened_us=at, team_id=rng.choice(("search", "ads")), bound_pusd=10**12 + n,
                model=rng.choice(("chat-large", "code")), kind=rng.choice(("chat", "embedding")),
                backend="own" if own else "api", pool=rng.choice(("a", "b")) if own else None,
                target="pool:a/0" if own else "openai/gpt-4o-mini",
                spill_reason=None if own else rng.choice((None, "ttft", "kv_headroom")), holds=(),
                tags=rng.choice(((), (("app", "web"),), (("app", "web"), ("env", "dev")))),
            )  # fmt: skip
            found.append((at, n, first))
            if rng.random() < 0.95:
                compared = (ComparedCost("x/y", 1, n), ComparedCost("y/z", 1, 2 * n, 900_000))
                last = settled(
                    n,
                    settled_us=at + 5,
                    slo_met=rng.choice((True, False, None)),
                    status=rng.choice(("finished", "finished", "client_gone", "upstream_error")),
                    cost_pusd=rng.choice((None, 0, rng.randrange(8 * 10**18), 10**12 - 1)),
                    tokens=TokenCounts(
                        input=rng.randrange(9_000), cached=3, output=rng.randrange(900)
                    ),
                    engine_us=rng.randrange(10**6) if own else 0,
                    compared=compared if rng.random() < 0.7 else (),
                )
                late = rng.random() < 0.2
                found.append((at + rng.randrange(DAY_US if late else 10**7), n, last))
        return [record for _, _, record in sorted(found, key=lambda finding: finding[:2])]

    return make


def answers(engine) -> dict[str, object]:
    """Everything that pages ask which sums may answer."""
    found: dict[str, object] = {}
    with engine.connect() as connection:
        here = rollup_progress(connection)
        for place, scope in enumerate(SCOPES):
            for bucket in (6 * HOUR_US, DAY_US):
                cells = queries.cells(connection, scope, bucket_us=bucket)
                found[f"cells {place} {bucket}"] = sorted(cells, key=repr)
                found[f"moments {place} {bucket}"] = moments(
                    connection, scope, here, bucket_us=bucket
                )
            once = facts(connection, scope, here, everyone=True)
            found[f"once {place}"] = sorted(once.cells(), key=repr)
            found[f"comparisons {place}"] = once.comparisons()
            found[f"overflowed {place}"] = once.overflowed(spills=["chat-large", "code"])
            found[f"tagged {place}"] = tagged(connection, scope)
            found[f"hours {place}"] = spent_by_hour(connection, scope)
            found[f"teams {place}"] = queries.teams(connection, scope)
            found[f"flagged {place}"] = flagged(connection, scope)
            found[f"spent {place}"] = queries.spent(
                connection, scope, by="model", bucket_us=6 * HOUR_US
            )
            more = {"spills": ["code"], "kinds": ["chat"], "pool": "a"}
            for basis in TokenBasis:
                load = loads(connection, scope, here, basis=basis).pool_load(**more)
                found[f"load {place} {basis}"] = load
            found[f"traffic {place}"] = once.traffic(**more)
        found["homes"] = home_pools(connection, here)
    return found


def without_sums(engine) -> dict[str, object]:
    """The same from rows alone: as if nobody had ever added anything up."""
    with engine.connect() as connection:
        before = (
            connection.execute(select(*orm.RollupPositionRow.__table__.columns)).mappings().all()
        )
    with engine.begin() as connection:
        connection.execute(delete(orm.RollupPositionRow))
    found = answers(engine)
    with engine.begin() as connection:
        connection.execute(insert(orm.RollupPositionRow), [dict(row) for row in before])
    return found


def stored(engine) -> dict[str, list]:
    """Every sum with what it is of, whatever number that has."""
    pairs = (
        (orm.RollupCellRow, orm.RollupHourRow), (orm.RollupCellRow, orm.RollupDayRow),
        (orm.RollupCellRow, orm.RollupQuarterRow), (orm.RollupCellRow, orm.RollupWeekRow),
        (orm.RollupComparisonRow, orm.RollupComparedHourRow),
        (orm.RollupComparisonRow, orm.RollupComparedDayRow),
        (orm.RollupComparisonRow, orm.RollupComparedQuarterRow),
        (orm.RollupComparisonRow, orm.RollupComparedWeekRow),
        (orm.RollupTagRow, orm.RollupTagHourRow), (orm.RollupTagRow, orm.RollupTagDayRow),
        (orm.RollupLoadRow, orm.RollupLoadHourRow), (orm.RollupLoadRow, orm.RollupLoadDayRow),
    )  # fmt: skip
    found = {}
    with engine.connect() as connection:
        for cells, sums in pairs:
            names = [name for name in sums.__table__.columns.keys() if name != "cell_id"]  # noqa: SIM118  (not a dict)
            query = select(cells.key, *(getattr(sums, name) for name in names))
            rows = connection.execute(query.join(sums, sums.cell_id == cells.id))
            found[sums.__tablename__] = sorted(tuple(row) for row in rows)
        waiting = connection.execute(select(orm.RollupWaitingRow.attempt_seq)).scalars()
        found["waiting"] = sorted(waiting)
    return found


def test_sums_and_rows_together_are_the_rows_at_every_step(engine, stream, seal_all) -> None:
    """Records come a few at a time; each time the journals' owner dies, and evidence comes late."""
    books, rollups, rng = LedgerRepository(engine, host="h"), Rollups(engine, rows_at_once=40), None
    rng = random.Random(5)
    records = stream(3, 150)
    held = []  # settles that reach the books after their attempt was given up
    place = checked = 0
    while place < len(records):
        some = records[place : place + rng.randrange(1, 90)]
        place += len(some)
        kept = [item for item in some if not (hasattr(item, "settled_us") and rng.random() < 0.1)]
        held += [item for item in some if item not in kept]
        books.import_records(kept, journal="j", at_us=START_US)
        if rng.random() < 0.5:
            books.settle_lost("j", at_us=START_US + DAYS * DAY_US)
        if rng.random() < 0.3:
            books.import_records(held, journal="k", at_us=START_US)
            held = []
        if rng.random() < 0.8:
            seal_all(engine)
        while rollups.follow() and rng.random() < 0.8:
            pass
        if rng.random() < 0.4:
            assert answers(engine) == without_sums(engine)
            checked += 1
    books.import_records(held, journal="k", at_us=START_US)
    seal_all(engine)
    while rollups.follow():
        pass
    assert answers(engine) == without_sums(engine)
    assert checked >= 2
    before = stored(engine)
    assert all(before.values())  # each tier has sums, and some attempts were lost and stay so
    told: list[tuple[int, int]] = []
    last = Rollups(engine, rows_at_once=77).rebuild(lambda *now: told.append(now))
    assert stored(engine) == before
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == (last, last)


def test_a_sum_that_is_off_is_seen(engine, stream, seal_all) -> None:
    """The control of the test above: it would not notice answers that are made from rows alone."""
    LedgerRepository(engine, host="h").import_records(stream(4, 60), journal="j", at_us=START_US)
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    assert answers(engine) == without_sums(engine)
    with engine.begin() as connection:
        for table in (orm.RollupHourRow, orm.RollupDayRow, orm.RollupWeekRow):
            first = connection.execute(select(func.min(table.start_us))).scalar_one()
            changed = update(table).where(table.start_us == first)
            connection.execute(changed.values(cost_low=table.cost_low + 1))
    assert answers(engine) != without_sums(engine)


@pytest.mark.parametrize(
    "where",
    [
        "rollup_load_hours",
        "rollup_load_days",
        pytest.param("rollup_weeks", marks=pytest.mark.long),
        pytest.param("rollup_days", marks=pytest.mark.long),
        pytest.param("rollup_position", marks=pytest.mark.long),
    ],
)
def test_killed_anywhere_each_attempt_counts_once(engine, stream, seal_all, where) -> None:
    LedgerRepository(engine, host="h").import_records(stream(9, 80), journal="j", at_us=START_US)
    seal_all(engine)
    rollups = Rollups(engine, rows_at_once=30)
    assert rollups.follow()

    def die(_connection, _cursor, statement, *_rest) -> None:
        if statement.startswith(("INSERT", "UPDATE")) and where in statement.split("(")[0]:
            raise InterruptedError

    event.listen(engine, "before_cursor_execute", die)
    with pytest.raises(InterruptedError):
        all(iter(rollups.follow, 0))  # coarser sums are made when all is added up
    event.remove(engine, "before_cursor_execute", die)
    assert answers(engine) == without_sums(engine)
    while rollups.follow():
        pass
    before = stored(engine)
    Rollups(engine).rebuild()
    assert stored(engine) == before
    assert answers(engine) == without_sums(engine)


def test_nothing_is_added_up_that_is_not_sealed(engine, stream, seal_all) -> None:
    LedgerRepository(engine, host="h").import_records(stream(1, 10), journal="j", at_us=START_US)
    assert Rollups(engine).follow() == 0
    seal_all(engine)
    assert Rollups(engine).follow() > 0


def test_one_follows_at_a_time(engine, stream, seal_all) -> None:
    if engine.dialect.name == "sqlite":
        return  # it has one writer at a time anyway
    LedgerRepository(engine, host="h").import_records(stream(1, 10), journal="j", at_us=START_US)
    seal_all(engine)
    Rollups(engine, rows_at_once=2).follow()
    with engine.begin() as connection:
        connection.execute(select(orm.RollupPositionRow.seq).with_for_update())
        assert Rollups(engine).follow() == 0
    assert Rollups(engine).follow() > 0


def test_products_of_tokens_stay_within_64_bits(engine, opened, settled, seal_all) -> None:
    """Of the largest counts a thousand products passed 2**63: nothing was added up any more."""
    huge, usual, records = TokenCounts(input=10**8, output=10**8), TokenCounts(7, output=5), []
    for number in range(2000):
        at_us = START_US + number % 3 * DAY_US
        tokens = usual if number % 2 else huge
        records.append(opened(number, opened_us=at_us, holds=()))
        records.append(settled(number, settled_us=at_us + 5, tokens=tokens))
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=START_US)
    seal_all(engine)
    rollups = Rollups(engine, rows_at_once=150)
    while rollups.follow():
        pass
    with engine.connect() as connection:
        summed = facts(connection, SCOPES[0], rollup_progress(connection)).attempts
        rows = facts(connection, SCOPES[0], None).attempts
    assert summed == rows
    (found,) = rows
    assert found.output_prompt == 1000 * (MOST_PRODUCT + 5 * 7)
    assert found.output_square == 1000 * (MOST_PRODUCT + 5 * 5)
    assert 10**7 * MOST_PRODUCT < 2**63
