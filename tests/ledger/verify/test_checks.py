"""Each check is quiet on sound books and finds what is broken on purpose."""

import msgspec
import pytest
from sqlalchemy import event, insert, text, update

from ledger.journals.records import TokenCounts
from ledger.orm import tables as orm
from ledger.prices.book import Price, PriceTerms, TierRates, cost_pusd, rates_from
from ledger.verify.checks import (
    CHECKS,
    FINDINGS_PER_CHECK,
    attempts_are_posted,
    costs_rederive,
    verify,
)
from ledger.writing.fold import JournalItem
from ledger.writing.repository import LedgerRepository

TOKENS = TokenCounts(input=10, cached=2, output=5)
PRICE = Price(
    version=1,
    name="openai/gpt-4o-mini",
    book="test",
    effective_from_us=0,
    terms=PriceTerms(
        rates_from({"input": 20, "output": 40}),
        (TierRates("flex", 0, rates_from({"input": 10, "output": 20})),),
    ),
)
COST = cost_pusd(TOKENS, PRICE)


@pytest.fixture
def books(engine, opened, settled):
    """Two settled attempts under a hard budget, one under way, at a price in the book."""
    rows = {
        orm.PriceVersionRow: {
            "version": 1, "name": PRICE.name, "since_us": 0, "source": "",
            "price": msgspec.to_builtins(PRICE), "recorded_us": 0,
        },
        orm.BudgetRow: {
            "id": "team:search@month", "scope": "team:search", "period": "month",
            "limit_pusd": 10_000, "hard": True, "created_us": 0,
        },
        orm.JournalPositionRow: {
            "journal": "j", "worker": "w", "host": "h", "segment": 1, "offset": 0,
            "applied_us": 0,
        },
        orm.BudgetWindowRow: {
            "budget_id": "team:search@month", "window": 1_778_000_000, "spent_pusd": 0,
            "granted_pusd": 9_000, "limit_pusd": 10_000,
        },
        orm.GrantRow: {
            "budget_id": "team:search@month", "window": 1_778_000_000, "host": "h",
            "granted_pusd": 9_000, "spent_pusd": 0,
        },
    }  # fmt: skip
    with engine.begin() as connection:
        for table, row in rows.items():
            connection.execute(insert(table), [row])
    records = [opened(3), opened(1), settled(1, cost_pusd=COST), opened(2),
               settled(2, cost_pusd=COST, claimed_pusd=COST + 7)]  # fmt: skip
    items = [JournalItem("j", 1, place, b"", record) for place, record in enumerate(records)]
    LedgerRepository(engine, host="h").apply(items, (), at_us=5)
    return engine


def findings(engine):
    with engine.connect() as connection:
        return verify(connection)


def test_sound_books_have_no_findings(books):
    result = findings(books)
    assert result.findings == ()
    assert result.is_clean
    assert result.checks == tuple(check.__name__ for check in CHECKS)


@pytest.mark.parametrize(
    ("status", "cost", "sound"),
    [("rejected", 0, True), ("rejected", 500, True), ("rejected", 7, False),
     ("finished", 0, False)],
)  # fmt: skip
def test_what_was_not_worked_on_may_be_without_its_fee(
    engine, opened, settled, status, cost, sound
):
    """Older rows have it; an answer never goes without."""
    document = msgspec.to_builtins(msgspec.structs.replace(
        PRICE, terms=msgspec.structs.replace(PRICE.terms, request_pusd=500)
    ))  # fmt: skip
    row = {"version": 1, "name": PRICE.name, "since_us": 0, "source": "", "price": document,
           "recorded_us": 0}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.PriceVersionRow), [row])
    ended = settled(1, status=status, tokens=TokenCounts(), cost_pusd=cost)
    LedgerRepository(engine, host="h").import_records([opened(1), ended], journal="j", at_us=5)
    with engine.connect() as connection:
        assert (list(costs_rederive(connection)) == []) is sound


def test_whoever_waits_is_told_which_check_begins(books):
    told: list[tuple[int, str]] = []
    with books.connect() as connection:
        verify(connection, lambda *one: told.append(one))
    assert told == [(place, check.__name__) for place, check in enumerate(CHECKS)]


def test_empty_books_are_sound(engine):
    assert findings(engine).is_clean


def test_a_limit_that_is_lowered_below_what_was_spent_is_no_fault(books):
    with books.begin() as connection:
        connection.execute(update(orm.BudgetRow).values(limit_pusd=1))
    assert findings(books).is_clean


def test_grants_of_a_soft_budget_bind_nobody(books):
    with books.begin() as connection:
        connection.execute(update(orm.GrantRow).values(granted_pusd=1, spent_pusd=2))
        connection.execute(update(orm.BudgetRow).values(hard=False))
    assert findings(books).is_clean


BROKEN = {
    "postings_balance": "UPDATE postings SET amount_pusd = amount_pusd + 1 WHERE line = 1 "
    "AND entry_id = 'r1.1'",
    "entries_have_a_cause": "INSERT INTO postings (entry_id, line, at_us, account, amount_pusd)"
    " VALUES ('adj:evil', 0, 0, 'expense:team:a', 1), ('adj:evil', 1, 0, 'expense:team:b', -1)",
    "attempts_are_posted": "DELETE FROM postings WHERE entry_id = 'r1.1'",
    "claims_are_posted": "UPDATE claims SET claimed_pusd = claimed_pusd - 1",
    "attempts_are_whole": "UPDATE attempts SET basis = NULL WHERE attempt_id = 'r1.1'",
    "costs_rederive": "UPDATE attempts SET output_tokens = 6 WHERE attempt_id = 'r1.1'",
    "holds_end": "UPDATE holds SET state = 'held' WHERE attempt_id = 'r1.1'",
    "grants_are_within_limits": "UPDATE budget_windows SET limit_pusd = '8999'",
    "totals_equal_sums": "UPDATE holds SET actual_pusd = 1 WHERE attempt_id = 'r1.1'",
    "grants_are_spent": "UPDATE grants SET spent_pusd = 1",
    "holds_follow_attempts": "UPDATE holds SET amount_pusd = 999 WHERE attempt_id = 'r1.1'",
    "windows_count_claims": "UPDATE budget_windows SET claimed_pusd = claimed_pusd + 1",
    "windows_are_as_declared": "INSERT INTO budget_versions (budget_id, scope, period, limit_pusd,"
    " hard, timezone, recorded_us) VALUES ('org:a@day', 'org:a', 'day', 1, true, 'UTC', 0)",
    "legs_add_up": "INSERT INTO attempt_legs (attempt_id, position, engine, role, busy_us,"
    " kv_tokens, held_us, outcome) VALUES ('r1.1', 0, '0', 'prefill', 7, 1, 1, 'done')",
    "hours_add_up": "INSERT INTO gpu_hours (pool, hour_us, contract_id, replicas, bill_pusd,"
    " used_pusd, idle_pusd, unavailable_pusd, busy_us, unavailable_us, closed_us)"
    " VALUES ('chat', 0, 1, 1, 10, 1, 2, 3, 0, 0, 0)",
    "hours_hold_every_settle": "INSERT INTO gpu_hour_teams (pool, hour_us, team_id, used_pusd,"
    " provisional_pusd, engine_us) VALUES ('chat', 0, 'ads', 0, 0, 7)",
    "nothing_is_quarantined": 'INSERT INTO quarantine (journal, segment, "offset", at_us, reason,'
    " record) VALUES ('j', 1, 9, 0, 'checksum', 'x')",
    "journals_are_whole": "INSERT INTO journal_findings (journal, worker, host, segment, "
    ' "offset", at_us, "after", missing, reason, at_most_pusd, budgets_pusd)'
    " VALUES ('j', 'w', 'h', 1, 9, 0, 7, 1, 'r', NULL, '0')",
    "sums_are_the_rows": "INSERT INTO rollup_position VALUES ('attempts', 9, 1)",
    "retirements_hold": "INSERT INTO retirements (number, part, ends, retired_us, until_us,"
    " attempts, posted, input_tokens, output_tokens, engine_us, cost_pusd, gone, left_rows,"
    " \"left\", chain) VALUES (1, 0, true, 0, 0, 1, 1, 0, 0, 0, '0',"
    " X'78', 0, X'78', X'79')",
    "condensings_hold": "INSERT INTO condensings (number, first_link, last_link, condensed_us,"
    ' entries, postings, refusals, gone, left_rows, "left", chain)'
    " VALUES (1, 1, 0, 0, 0, 0, 0, X'78', 0, X'78', X'79')",
    "registers_hold": "INSERT INTO register_entries (number, at_us, register, row, event, said,"
    " leaf, chain) VALUES (1, 0, 'keys', 'k', 'made', '{}', X'78', X'79')",
    "annexes_hold": "INSERT INTO seal_annexes (number, at_us, kind, subject, rows, digest, chain)"
    " VALUES (1, 0, 'later', '', 0, X'78', X'79')",
    "cells_are_named": "INSERT INTO rollup_keys (key, team_id, key_id, backend)"
    " VALUES ('[]', 'a', 'b', 'own')",
    "stored_bytes_add_up": "INSERT INTO stored_bytes VALUES ('a', 1)",
    "seals_hold": "INSERT INTO seals VALUES (1, 0, 9, 0, 0, 0, 2, X'78', X'79')",
}


def test_every_check_is_broken_below():
    assert set(BROKEN) == {check.__name__ for check in CHECKS}


@pytest.mark.each_database
@pytest.mark.parametrize("check", BROKEN)
def test_what_is_broken_is_found(books, check):
    statement = BROKEN[check]
    if books.dialect.name == "postgresql":
        statement = statement.replace("'8999'", "8999").replace("X'", "'")
    with books.begin() as connection:
        connection.execute(text(statement))
    result = findings(books)
    assert check in {finding.check for finding in result.findings}
    assert not result.is_clean


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE grants SET granted_pusd = 8000", "grants_are_within_limits"),
        ("UPDATE grants SET spent_pusd = 9001", "grants_are_within_limits"),
        (
            "UPDATE budget_windows SET spent_pusd = 10001",
            "grants_are_within_limits",
        ),
        ("UPDATE budget_windows SET spent_pusd = 5", "totals_equal_sums"),
        ("DELETE FROM budget_windows", "totals_equal_sums"),
        ("DELETE FROM journal_positions", "holds_end"),
        ("UPDATE attempts SET price_version = 9 WHERE attempt_id = 'r2.1'", "costs_rederive"),
        ("UPDATE attempts SET tier = 'flex' WHERE attempt_id = 'r2.1'", "costs_rederive"),
        ("UPDATE attempts SET request_id = 'r1'", "attempts_are_whole"),
        ("UPDATE attempts SET cost_pusd = NULL WHERE attempt_id = 'r2.1'", "attempts_are_whole"),
    ],
)
def test_further_ways_to_break_the_books(books, statement, check):
    with books.begin() as connection:
        connection.execute(text(statement))
    assert check in {finding.check for finding in findings(books).findings}


def test_rows_that_cannot_be_read_are_a_finding_and_no_crash(books):
    with books.begin() as connection:
        for name in ("one", "two"):
            row = {"name": name, "version": 1, "until_us": 0, "calm": 0}
            connection.execute(insert(orm.RollupPackingRow), [row])
    (found,) = findings(books).findings
    assert found.check == "sums_are_the_rows"
    assert "MultipleResultsFound" in found.message


def test_findings_are_bounded(books):
    rows = [
        {"journal": "j", "segment": 2, "offset": number, "at_us": 0, "reason": "r", "record": b""}
        for number in range(FINDINGS_PER_CHECK + 5)
    ]
    with books.begin() as connection:
        connection.execute(insert(orm.QuarantinedRecordRow), rows)
    result = findings(books)
    assert len(result.findings) == FINDINGS_PER_CHECK
    assert result.truncated == ("nothing_is_quarantined",)


def test_many_attempts_of_one_team_are_checked_by_their_entries(engine, opened, settled):
    """By the index on entries: by the one on accounts, each attempt would walk its team's lines."""
    records = [record for n in range(50) for record in (opened(n), settled(n))]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=5)
    statements = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2:4]))
    with engine.connect() as connection:
        assert list(attempts_are_posted(connection)) == []
        query, values = statements[-1]  # before it: the connection's own settings
        if engine.dialect.name == "sqlite":
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all()
            joined = [row[-1] for row in plan if "postings" in row[-1]]
            assert joined
            assert all("entry_id" in step for step in joined)
