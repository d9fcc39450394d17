"""Applying records: exactly once, whole or not at all, a poison record alone, on both databases."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, func, insert, select, text
from sqlalchemy.exc import OperationalError

from ledger.journals.reader import JournalOffset
from ledger.journals.records import ComparedCost, Hold
from ledger.orm import tables as orm
from ledger.writing.fold import JournalItem
from ledger.writing.repository import DatabaseUnavailable, JournalMove, LedgerRepository
from ledger.writing.statements import WriterStatements
from ledger.writing.stored import known_attempts

HUGE = 2**63  # one more than a BIGINT holds


def items(*records, journal="w0-a"):
    return [
        JournalItem(journal, 1, place * 100, b"raw", record) for place, record in enumerate(records)
    ]


def move(offset, since=0, journal="w0-a"):
    return JournalMove(journal, "w0", JournalOffset(1, since), JournalOffset(1, offset))


def rows(engine, query):
    with engine.connect() as connection:
        return connection.execute(query).all()


def one(engine, query):
    ((value,),) = rows(engine, query)
    return value


def count(engine, table):
    return one(engine, select(func.count()).select_from(table))


@pytest.fixture
def repository(engine):
    return LedgerRepository(engine, host="h1")


def test_an_attempt_is_one_row_with_its_postings_holds_and_comparators(
    engine, repository, opened, settled
):
    settle = settled(
        1, compared=(ComparedCost("openai/gpt-4o", 7, 900), ComparedCost("b/c", 8, 300))
    )
    applied = repository.apply(items(opened(1), settle), [move(200)], at_us=5)
    assert (applied.attempts, applied.settled, applied.quarantined) == (1, 1, 0)
    attempt = rows(engine, select(orm.AttemptRow.__table__))[0]._mapping
    assert attempt["cost_pusd"] == 400
    assert (attempt["input_tokens"], attempt["cached_tokens"], attempt["output_tokens"]) == (
        10,
        2,
        5,
    )
    assert (attempt["compared_with"], attempt["compared_pusd"]) == ("openai/gpt-4o", 900)
    assert (attempt["tags"], attempt["flag"]) == ({"app": "web"}, None)
    assert rows(engine, select(orm.PostingRow.account, orm.PostingRow.amount_pusd)) == [
        ("expense:team:search", 400),
        ("payable:provider:openai", -400),
    ]
    assert rows(engine, select(orm.HoldRow.state, orm.HoldRow.actual_pusd)) == [("posted", 400)]
    assert count(engine, orm.ComparedCostRow) == 2
    assert count(engine, orm.AttemptDecisionRow) == 1
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 400
    assert repository.positions() == {"w0-a": JournalOffset(1, 200)}


def test_open_and_settle_apart_equal_open_and_settle_together(engine, repository, opened, settled):
    repository.apply(items(opened(1), settled(1)), (), at_us=5)
    repository.apply(items(opened(2)), (), at_us=5)
    assert rows(engine, select(orm.HoldRow.state).order_by(orm.HoldRow.attempt_id)) == [
        ("posted",),
        ("held",),
    ]
    repository.apply(items(settled(2)), (), at_us=6)
    table = orm.AttemptRow.__table__
    skip = {"seq", "attempt_id", "request_id", "opened_us", "settled_us"}
    columns = [column for column in table.columns if column.name not in skip]
    first, second = rows(engine, select(*columns).order_by(table.c.attempt_id))
    assert first == second
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 800


@pytest.mark.parametrize("together", [True, False])
def test_replaying_everything_changes_nothing(
    engine, repository, opened, settled, refused, together
):
    records = items(opened(1), settled(1), opened(2), refused(1), opened(1), settled(1))
    batches = [records] if together else [[item] for item in records]
    for _ in range(3):
        for batch in batches:
            repository.apply(batch, (), at_us=5)
    assert count(engine, orm.AttemptRow) == 2
    assert count(engine, orm.PostingRow) == 2
    assert count(engine, orm.RefusalRow) == 1
    assert count(engine, orm.QuarantinedRecordRow) == 0
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 400


@pytest.mark.parametrize(
    "order", [("o1", "s1", "o2", "s2"), ("s1", "o1", "o2", "s2"), ("o2", "s2", "o1", "s1")]
)
def test_an_open_that_the_books_have_changes_nothing_beside_others(
    engine, repository, opened, settled, order
):
    repository.apply(items(opened(1)), (), at_us=5)
    records = {"o1": opened(1), "s1": settled(1), "o2": opened(2), "s2": settled(2)}
    applied = repository.apply(items(*(records[name] for name in order)), [move(9)], at_us=6)
    assert (applied.attempts, applied.settled, applied.quarantined) == (1, 2, 0)
    assert count(engine, orm.PostingRow) == 4
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 800
    assert rows(engine, select(orm.HoldRow.state)) == [("posted",)] * 2


def test_the_books_are_asked_only_for_settles_without_their_open(
    repository, opened, settled, monkeypatch
):
    asked = []

    def known(connection, ids):
        asked.append(list(ids))
        return known_attempts(connection, ids)

    monkeypatch.setattr("ledger.writing.repository.known_attempts", known)
    repository.apply(items(opened(1), opened(2), settled(2)), (), at_us=5)
    repository.apply(items(settled(1), opened(3), settled(3)), (), at_us=6)
    repository.apply(items(opened(3), opened(4)), (), at_us=7)  # read again: all are asked for
    assert asked == [[], ["r1.1"], [], ["r3.1", "r4.1"]]


@pytest.mark.parametrize("more", [0, 30])  # a few are inserted, many are copied
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_poison_record_is_quarantined_alone(engine, repository, opened, settled, victim, more):
    good = [opened(1), settled(1), opened(2), settled(2)]
    good += [opened(100 + number) for number in range(more)]
    poison = [
        opened(9, bound_pusd=HUGE, holds=()),
        opened(9, team_id=None, holds=()),
        settled(9, cost_pusd=-1),
    ][victim]
    batch = items(opened(9), *good, poison) if victim == 2 else items(*good[:2], poison, *good[2:])
    applied = repository.apply(batch, [move(500)], at_us=5)
    assert applied.quarantined == 1
    with engine.connect() as connection:
        found = connection.execute(
            select(orm.AttemptRow.attempt_id).where(orm.AttemptRow.settled_us.is_not(None))
        ).scalars()
        assert sorted(found) == ["r1.1", "r2.1"]
    assert count(engine, orm.QuarantinedRecordRow) == 1
    assert repository.positions() == {"w0-a": JournalOffset(1, 500)}


class Counts:
    """What a repository asked of the database: the sizes that it tried, commits, locked totals."""

    def __init__(self, engine, repository, monkeypatch):
        self.tries, self.commits, self.totals = [], [], []
        apply = repository._apply_batch

        def counted(connection, some, at_us, *, opens):
            self.tries.append(len(some))
            return apply(connection, some, at_us, opens=opens)

        monkeypatch.setattr(repository, "_apply_batch", counted)
        event.listen(engine, "commit", self.commits.append)
        event.listen(engine, "before_cursor_execute", self.said)

    def said(self, _connection, _cursor, statement, *_):
        if statement.startswith("SELECT budget_windows.spent_pusd"):
            self.totals.append(statement)


@pytest.fixture
def counts(engine, repository, monkeypatch):
    return Counts(engine, repository, monkeypatch)


def test_one_poison_record_among_many_costs_few_tries(engine, repository, opened, settled, counts):
    """Of 128 records each by itself would be 128, each with chances of its own to fail."""
    good = [record for number in range(63) for record in (opened(number), settled(number))]
    batch = items(*good, opened(98), opened(99, bound_pusd=HUGE))
    assert repository.apply(batch, [move(500)], at_us=5).quarantined == 1
    assert count(engine, orm.AttemptRow) == 64
    # Whole with its opens for new; whole in the second transaction; then a half of a half.
    assert counts.tries[:2] == [128, 128]
    assert len(counts.tries) == 2 + 2 * 7
    assert len(counts.commits) == 1
    assert len(counts.totals) == 2  # of all parts together: no row yet, then the one that is made
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 63 * 400


def test_what_was_refused_is_not_searched_for_again_when_its_transaction_failed(
    engine, repository, opened, settled, counts, monkeypatch
):
    batch = items(*(opened(number) for number in range(63)), opened(99, bound_pusd=HUGE))
    failing, positions = iter([True]), repository._move

    def cut(*arguments):
        if next(failing, False):
            raise OperationalError("INSERT", {}, Exception("the connection was cut"))
        positions(*arguments)

    monkeypatch.setattr(repository, "_move", cut)
    with pytest.raises(DatabaseUnavailable):
        repository.apply(batch, [move(500)], at_us=5)
    assert count(engine, orm.QuarantinedRecordRow) == count(engine, orm.AttemptRow) == 0
    assert len(counts.tries) == 2 + 2 * 6
    del counts.tries[:]
    applied = repository.apply(batch, [move(500)], at_us=5)
    assert (applied.attempts, applied.quarantined) == (63, 1)
    assert counts.tries == [63]  # whole, and the one is set aside beside it
    ((reason, record),) = rows(
        engine, select(orm.QuarantinedRecordRow.reason, orm.QuarantinedRecordRow.record)
    )
    assert reason[: reason.index(":")] in ("DataError", "DBAPIError", "OverflowError")
    assert record == b"raw"
    repository.apply(items(settled(99)), [move(600, since=500)], at_us=6)
    assert count(engine, orm.QuarantinedRecordRow) == 2  # its settle has nothing to stand on


FAILS_NOW_AND_THEN = """
CREATE SEQUENCE tried;
CREATE FUNCTION fails() RETURNS trigger AS $$ BEGIN
IF mod(nextval('tried'), 40) = 0 THEN RAISE EXCEPTION 'others' USING ERRCODE = '40P01'; END IF;
RETURN NEW; END $$ LANGUAGE plpgsql;
CREATE TRIGGER fails BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION fails()
"""


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_rows_that_fail_for_a_moment_are_tried_again_within_one_transaction(
    engine, repository, opened, settled, counts
):
    """Of a sequence no failure takes a number back: each 40th row tried finds others in the way."""
    with engine.begin() as connection:
        connection.exec_driver_sql(FAILS_NOW_AND_THEN)
    good = [record for number in range(400) for record in (opened(number), settled(number))]
    batch = items(*good[:333], opened(999, bound_pusd=HUGE), *good[333:])
    del counts.commits[:]
    applied = repository.apply(batch, [move(90_000)], at_us=5)
    assert (applied.attempts, applied.settled, applied.quarantined) == (400, 400, 1)
    assert len(counts.commits) == 1
    assert len(counts.totals) <= 2
    assert count(engine, orm.AttemptRow) == 400
    assert count(engine, orm.PostingRow) == 800
    assert count(engine, orm.QuarantinedRecordRow) == 1
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 400 * 400
    assert len(counts.tries) < 100
    assert sum(counts.tries) < 12 * len(batch)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_one_row_that_always_fails_for_a_moment_is_away_and_not_set_aside(
    engine, repository, opened
):
    with engine.begin() as connection:
        connection.exec_driver_sql(FAILS_NOW_AND_THEN.replace(", 40) = 0", ", 40) >= 0"))
    with pytest.raises(DatabaseUnavailable):
        repository.apply(items(opened(1), opened(2)), [move(200)], at_us=5)
    assert count(engine, orm.AttemptRow) == count(engine, orm.QuarantinedRecordRow) == 0
    assert repository.positions() == {}


def test_faults_and_orphan_settles_are_kept_for_a_person(engine, repository, settled):
    fault = JournalItem("w0-a", 1, 0, b"\xff\xff", None, "checksum")
    repository.apply([fault, *items(settled(7))[:1]], (), at_us=5)
    # Both lie at the same place of the journal: the first reason stays.
    assert rows(
        engine, select(orm.QuarantinedRecordRow.reason, orm.QuarantinedRecordRow.record)
    ) == [("checksum", b"\xff\xff")]
    repository.apply([JournalItem("w0-a", 1, 90, b"raw", settled(7))], (), at_us=5)
    assert rows(
        engine, select(orm.QuarantinedRecordRow.reason).where(orm.QuarantinedRecordRow.offset == 90)
    ) == [("a settle without its open",)]


def test_lost_attempts_count_at_their_bound_until_evidence_comes(
    engine, repository, opened, settled
):
    repository.apply(items(opened(1), opened(2), settled(2)), (), at_us=5)
    assert repository.settle_lost("another", at_us=9).settled == 0
    assert repository.settle_lost("w0-a", at_us=9).settled == 1
    assert repository.settle_lost("w0-a", at_us=9).settled == 0
    columns = (
        orm.AttemptRow.status,
        orm.AttemptRow.basis,
        orm.AttemptRow.cost_pusd,
        orm.AttemptRow.flag,
    )
    lost = select(*columns).where(orm.AttemptRow.attempt_id == "r1.1")
    assert rows(engine, lost) == [("lost", "bound", 1000, "lost")]
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 1400
    repository.apply(items(settled(1)), (), at_us=10)
    repository.apply(items(settled(1)), (), at_us=11)
    assert rows(engine, lost) == [("finished", "reported", 400, "late")]
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 800
    balance = dict(
        rows(
            engine,
            select(orm.PostingRow.account, orm.exact_sum(orm.PostingRow.amount_pusd)).group_by(
                orm.PostingRow.account
            ),
        )
    )
    assert balance == {
        "expense:team:search": 800,
        "payable:provider:openai": -800,
        "suspense:openai": 0,
    }


@pytest.fixture
def begun_elsewhere(engine, opened):
    """A journal of `h0`, with an open attempt; its window, and grants of 4500 to `h0` and `h1`."""
    LedgerRepository(engine, host="h0").apply(items(opened(1)), [move(100)], at_us=5)
    with engine.begin() as connection:
        query = select(orm.HoldRow.budget_id, orm.HoldRow.window)
        budget, start = connection.execute(query).one()
        window = {"budget_id": budget, "window": start}
        sums = {"spent_pusd": 0, "granted_pusd": 9000, "limit_pusd": 9000}
        connection.execute(insert(orm.BudgetWindowRow), [{**window, **sums}])
        grants = [{**window, "host": host, "granted_pusd": 4500, "spent_pusd": 0}
                  for host in ("h0", "h1")]  # fmt: skip
        connection.execute(insert(orm.GrantRow), grants)
    return window


def grants(engine):
    query = select(orm.GrantRow.host, orm.GrantRow.spent_pusd).order_by(orm.GrantRow.host)
    return [tuple(row) for row in rows(engine, query)]


def test_a_host_of_another_name_by_now_spends_what_it_was_granted_by_the_old_one(
    engine, repository, opened, settled, begun_elsewhere
):
    """A journal that one name began is ended by another: its holds are of the first one's grant."""
    tail = [JournalItem("w0-a", 1, 100, b"raw", settled(1))]
    mine = items(opened(2), settled(2, cost_pusd=30), journal="w0-b")
    moved = [move(200, 100), move(200, journal="w0-b")]
    assert repository.apply([*tail, *mine], moved, at_us=6).settled == 2
    assert grants(engine) == [("h0", 400), ("h1", 30)]
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 430


def test_who_waited_for_a_window_adds_to_what_its_grant_is_by_then(
    engine, repository, settled, begun_elsewhere
):
    here = {"of_budget": begun_elsewhere["budget_id"], "of_window": begun_elsewhere["window"]}
    say, spent = WriterStatements(engine.dialect), {"spent_pusd": 70, "claimed_pusd": 0}
    tail = [JournalItem("w0-a", 1, 100, b"raw", settled(1))]
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as first:
            say.spend.run(first, [{**here, **spent}])
            other = pool.submit(repository.apply, tail, [move(200, 100)], at_us=6)
            while not (waits(engine) or other.done()):
                time.sleep(0.01)
            say.spend_grant.run(first, [{**here, **spent, "of_host": "h0"}])
        assert other.result(30).settled == 1
    assert grants(engine) == [("h0", 470), ("h1", 0)]
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 470


def waits(engine):
    """Whether somebody waits for a row; SQLite has one writer, and does not tell of others."""
    if engine.dialect.name == "sqlite":
        time.sleep(0.1)
        return True
    return one(engine, text("SELECT count(*) FROM pg_locks WHERE NOT granted")) > 0


def test_unpriced_is_flagged_and_never_zero(engine, repository, opened, settled):
    repository.apply(items(opened(1), settled(1, cost_pusd=None)), (), at_us=5)
    assert rows(engine, select(orm.AttemptRow.cost_pusd, orm.AttemptRow.flag)) == [
        (None, "unpriced")
    ]
    assert count(engine, orm.PostingRow) == 0


def test_a_soft_budget_counts_at_settle(engine, repository, opened, settled):
    soft = (Hold("global@day", 1_780_000_000, 0),)
    repository.apply(items(opened(1, holds=soft), settled(1)), (), at_us=5)
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 400


def test_totals_are_exact_beyond_64_bits(engine, repository, opened, settled):
    big = 9_000_000_000_000_000_000
    batch = []
    for number in range(4):
        batch += [opened(number, bound_pusd=big), settled(number, cost_pusd=big)]
    repository.apply(items(*batch), (), at_us=5)
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 4 * big
    assert one(engine, select(orm.exact_sum(orm.AttemptRow.cost_pusd))) == 4 * big


def test_the_database_away_is_told_and_nothing_moves(engine, repository, opened):
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE journal_positions RENAME TO elsewhere"))
    if engine.dialect.name == "sqlite":  # PostgreSQL calls a missing table wrong, not away
        with pytest.raises(DatabaseUnavailable):
            repository.apply(items(opened(1)), [move(100)], at_us=5)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE elsewhere RENAME TO journal_positions"))
    assert count(engine, orm.AttemptRow) == 0


def test_a_history_is_imported_in_batches_once(engine, repository, opened, settled):
    records = [record for number in range(3000) for record in (opened(number), settled(number))]
    for expected in (3000, 0):
        applied = repository.import_records(records, journal="history", at_us=5)
        assert (applied.attempts, applied.settled) == (expected, expected)
    assert count(engine, orm.AttemptRow) == 3000
    assert one(engine, select(orm.BudgetWindowRow.spent_pusd)) == 3000 * 400
