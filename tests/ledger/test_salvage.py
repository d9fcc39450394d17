"""What damaged journals still hold is brought into the books once, and never twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, func, insert, select, text

from ledger.budgets.declaring import serialize_declarations
from ledger.budgets.grants import BudgetAccount, GrantNeed, grow
from ledger.database import make_engine
from ledger.journals.homes import FOLDER
from ledger.journals.journal import JournalWriter
from ledger.journals.layout import HEADER_BYTES
from ledger.journals.reader import JournalReader
from ledger.journals.records import AttemptOpened, CacheHit, Hold
from ledger.orm import tables as orm
from ledger.salvage import SalvageResult, SalvageSource, apply_remains, find_remains
from ledger.verify.checks import verify
from ledger.writing.findings import acknowledge, open_findings
from ledger.writing.repository import LedgerRepository
from ledger.writing.tail import JournalTailer

HOST, WINDOW = "h1", 1_779_926_400  # 2026-05-28
BUDGET = "team:search@day"
HIT = CacheHit(
    "h", 100, "k", None, "search", "acme", "chat", False, "chat", "plain", "openai/x", "api",
    "r0", 5, 10, 3, 70,
)  # fmt: skip


def drain(engine, directory):
    tail = JournalTailer(LedgerRepository(engine, host=HOST), JournalReader(directory), lambda: 77)
    while (step := tail.step()).moved or step.buried:
        pass


def flip(path, *places):
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 4
    path.write_bytes(data)


@pytest.fixture
def damaged(engine, tmp_path, opened, settled, refused):
    """Of six attempts the journal lost: 1's settle, 2's open, 3's both (one beyond repair)."""
    with engine.begin() as connection:
        row = {"id": BUDGET, "scope": "team:search", "period": "day", "limit_pusd": 10**6,
               "hard": True, "timezone": "UTC", "created_us": 0}  # fmt: skip
        connection.execute(insert(orm.BudgetRow), [row])
    grow(engine, HOST, [GrantNeed(BudgetAccount(BUDGET, WINDOW), 6_000, 1_000)])
    writer = JournalWriter(tmp_path, "w0")
    starts = []
    for number in range(6):
        starts.append(HEADER_BYTES + writer._offset)
        writer.append(opened(number, holds=(Hold(BUDGET, WINDOW, 1_000),)))
        starts.append(HEADER_BYTES + writer._offset)
        writer.append_ending(settled(number))
    starts.append(HEADER_BYTES + writer._offset)
    writer.append(refused(1))
    writer.close()
    (path,) = (tmp_path / FOLDER / writer.name).glob("*.segment")
    flip(path, starts[3] + 50, starts[4] + 6, starts[6] + 60, starts[7] + 70, starts[12] + 9)
    drain(engine, tmp_path)
    with engine.begin() as connection:
        seen = {finding.place for finding in open_findings(connection)}
        assert len(seen) >= 3
        acknowledge(connection, seen, by="ann", note=None, at_us=78)
    return engine, tmp_path


def flags(engine) -> dict[str, str | None]:
    with engine.connect() as connection:
        rows = connection.execute(select(orm.AttemptRow.attempt_id, orm.AttemptRow.flag))
        return {row[0]: row[1] for row in rows}


def faults(engine) -> set[str]:
    """Of what is said of money; prices are made up here."""
    with engine.connect() as connection:
        found = verify(connection).findings
    return {finding.check for finding in found} - {"costs_rederive"}


def test_it_is_shown_and_nothing_changes(damaged) -> None:
    engine, directory = damaged
    before = flags(engine)
    assert set(before) == {f"r{number}.1" for number in (0, 1, 4, 5)}
    assert before["r1.1"] == "lost"
    sources = find_remains(engine, directory)
    assert sum(len(source.new) for source in sources) == 6  # settle, open and settle twice, refusal
    assert sum(source.repaired for source in sources) == 5
    assert flags(engine) == before


def test_it_is_applied_once_with_its_money(damaged) -> None:
    engine, directory = damaged
    assert faults(engine) == set()
    done = apply_remains(engine, HOST, find_remains(engine, directory), by="ann", at_us=80)
    assert done == SalvageResult(attempts=2, settled=3, refusals=1)
    after = flags(engine)
    assert {name: flag for name, flag in after.items() if flag} == {"r1.1": "late"}
    assert len(after) == 6
    with engine.connect() as connection:
        spent = connection.execute(select(orm.BudgetWindowRow.spent_pusd)).scalar_one()
        refusals = connection.execute(select(func.count()).select_from(orm.RefusalRow)).scalar_one()
        entered = connection.execute(
            select(orm.ManualEntryRow.actor).where(
                orm.ManualEntryRow.subject.startswith("salvage:")
            )
        ).scalars()
        assert set(entered) == {"ann"}
    assert (spent, refusals) == (6 * 400, 1)
    assert faults(engine) == set()
    sources = find_remains(engine, directory)
    assert sum(len(source.new) for source in sources) == 0
    again = apply_remains(engine, HOST, sources, by="ann", at_us=81)
    assert again == SalvageResult()
    assert flags(engine) == after


def test_an_open_whose_settle_is_gone_counts_at_its_bound(damaged) -> None:
    engine, directory = damaged
    sources = find_remains(engine, directory)
    for source in sources:
        source.new = [
            each
            for each in source.new
            if isinstance(each, AttemptOpened) and each.attempt_id == "r3.1"
        ]
    apply_remains(engine, HOST, sources, by="ann", at_us=80)
    assert flags(engine)["r3.1"] == "lost"
    assert faults(engine) == set()


def test_what_is_older_than_what_was_retired_is_left_out(damaged, monkeypatch) -> None:
    engine, directory = damaged
    monkeypatch.setattr("ledger.salvage.retired_until_us", lambda _: 2**62)
    sources = find_remains(engine, directory)
    assert sum(len(source.new) for source in sources) == 0
    assert sum(source.retired for source in sources) == 6


def test_a_hit_whose_hour_was_retired_is_left_out(engine, tmp_path, settled, monkeypatch) -> None:
    writer = JournalWriter(tmp_path, "w0")
    writer.append(HIT)
    last = HEADER_BYTES + writer._offset
    writer.append(settled(1))
    writer.close()
    (path,) = (tmp_path / FOLDER / writer.name).glob("*.segment")
    flip(path, last + 50)
    drain(engine, tmp_path)
    with engine.begin() as connection:
        connection.execute(delete(orm.CacheHitRow))

    def hits() -> tuple[list[object], int]:
        sources = find_remains(engine, tmp_path)
        new = [record for source in sources for record in source.new if record == HIT]
        return new, sum(source.retired for source in sources)

    assert hits() == ([HIT], 0)
    monkeypatch.setattr("ledger.salvage.hits_retired_until_us", lambda _: HIT.hit_us + 1)
    assert hits() == ([], 1)


def test_no_window_is_locked_while_budgets_are_declared(lent_database, opened) -> None:
    """Red before, as a deadlock: it locked a window, and waited for who declares."""
    engine = make_engine(lent_database.lend())
    budget = {"id": BUDGET, "scope": "team:search", "period": "day", "limit_pusd": 10**6,
              "hard": True, "timezone": "UTC", "created_us": 0}  # fmt: skip
    source = SalvageSource("x", "w0", [opened(1, holds=(Hold(BUDGET, WINDOW, 1_000),))])
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")
    window = select(orm.BudgetWindowRow).where(orm.BudgetWindowRow.budget_id == BUDGET)
    try:
        with engine.begin() as connection:
            connection.execute(insert(orm.BudgetRow), [budget])
        grow(engine, HOST, [GrantNeed(BudgetAccount(BUDGET, WINDOW), 1_000, 1_000)])
        with ThreadPoolExecutor(1) as pool:
            with engine.begin() as connection:
                serialize_declarations(connection)
                told = pool.submit(apply_remains, engine, HOST, [source], by="ann", at_us=99)
                while not told.done() and not connection.execute(waiting).scalar_one():
                    pass
                assert not told.done()
                connection.execute(window.with_for_update(nowait=True))
            assert told.result().attempts == 1
    finally:
        engine.dispose()
        lent_database.take_back()


def test_a_journal_that_a_person_renamed_is_shown_and_brought_in(
    engine, tmp_path, opened, settled
) -> None:
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1, holds=()))
    writer.append_ending(settled(1))
    writer.close()
    home = tmp_path / FOLDER / writer.name
    home.rename(home.with_name(f"{home.name}.bak"))
    drain(engine, tmp_path)
    assert flags(engine) == {}
    (source,) = find_remains(engine, tmp_path)
    assert (source.journal, len(source.new)) == (writer.name, 2)
    assert apply_remains(engine, HOST, [source], by="ann", at_us=79).attempts == 1
    assert flags(engine) == {"r1.1": None}
    assert faults(engine) == set()
