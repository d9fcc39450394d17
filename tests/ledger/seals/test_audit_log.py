"""What the books are kept by is entered once, chained, without secrets, whoever wrote it."""

import pytest
from sqlalchemy import event, insert, select

from ledger.budgets.versions import record_versions
from ledger.fleet.samples import add_capacity, add_catalog
from ledger.identity.keys import KeySpec, create_key, revoke_key
from ledger.invoices.books import post_invoice, store
from ledger.invoices.files import parse
from ledger.manual_entries import ManualEntry, enter
from ledger.orm import tables as orm
from ledger.seals.audit_log import REGISTERS, AuditLog, changes, register_head
from ledger.verify.registers import registers_hold

LATER_US = 1_800_000_000_000_000  # the invoice's days are over


def contract(pool: str, pusd: int | None, recorded_us: int) -> dict:
    return {"pool": pool, "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 2,
            "billing": "reserved", "pusd_per_hour": pusd, "recorded_us": recorded_us}  # fmt: skip


@pytest.fixture
def kept(engine):
    """Two contracts of a pool, a key, a policy set, an import, a configuration, all entered."""
    with engine.begin() as connection:
        spec = KeySpec("ci", team="search", user="ann", tags=(("app", "web"), ("a", "b")))
        made = create_key(connection, spec, pepper=b"p" * 32, now_us=5)
        said = {"key_id": made.key_id, "event": "made", "actor": "ann", "recorded_us": 5}
        connection.execute(insert(orm.KeyChangeRow), [said])
    with engine.begin() as connection:
        connection.execute(
            insert(orm.GpuContractRow), [contract("chat", 7, 1), contract("chat", 9, 2)]
        )
        connection.execute(
            insert(orm.PolicySetRow),
            [{"number": 1, "document": "policies: []", "recorded_us": 3, "actor": "ann@host"}],
        )
        connection.execute(insert(orm.OverrideRow), [
            {"number": 1, "subject": "target:a", "says": "disabled", "recorded_us": 3,
             "actor": "ann@host"}])  # fmt: skip
        connection.execute(
            insert(orm.PriceImportRow),
            [{"at_us": 3, "actor": "bob", "origin": "deal.csv", "book": "deal.csv", "stored": 2}],
        )
        connection.execute(insert(orm.ConfigVersionRow), [
            {"hash": "h1", "yaml": "secret: 7", "applied_us": 4}])  # fmt: skip
        connection.execute(insert(orm.BudgetRow), [
            {"id": "global@day", "scope": "global", "period": "day", "limit_pusd": 7,
             "hard": True, "created_us": 4}])  # fmt: skip
        assert record_versions(connection, 4) == 1
        enter(
            connection, ManualEntry(0, "rate:chat", {"pusd_per_hour": 7}, 4, 4, "fay", "a contract")
        )
    add_capacity(engine, {"at_us": 4, "pool": "p", "engine": "p/0", "step_a_s": 0.1,
                          "source": "measured"})  # fmt: skip
    runs = {"at_us": 4, "pool": "p", "engine": "p/0", "kind": "vllm", "model": "m",
            "simulated": False, "flags": ["--seed", "1"]}  # fmt: skip
    add_catalog(engine, runs)
    lines = "".join(f"2026-11-0{day},m,4000000.5\n" for day in (1, 2, 3))  # beyond 64 bits in all
    bill = parse(f"date,item,amount\n{lines}")
    store(engine, bill, party="provider:a", name="nov.csv", by="ana@host", at_us=4)
    assert AuditLog(engine).follow(at_us=10)
    return engine, made


def test_everything_is_entered_once(kept) -> None:
    engine, _ = kept
    assert AuditLog(engine).follow(at_us=11) == 0
    with engine.connect() as connection:
        found = connection.execute(select(orm.RegisterEntryRow.register)).scalars().all()
        assert sorted(found) == sorted([
            "gpu_contracts", "gpu_contracts", "price_imports", "policy_sets", "overrides",
            "config_versions", "budget_versions", "organisations", "teams", "users", "keys",
            "key_changes", "invoices", "capacity", "catalog", "entered",
        ])  # fmt: skip
        assert set(found) == {named.name for named in REGISTERS}
        assert list(registers_hold(connection)) == []


def test_it_says_who_changed_what_from_what_to_what(kept) -> None:
    engine, _ = kept
    with engine.connect() as connection:
        listed = {(change.register, change.row): change for change in changes(connection, 50)}
    moved = {name: (old, new) for name, old, new in listed["gpu_contracts", "2"].fields}
    assert moved == {"id": (1, 2), "pusd_per_hour": (7, 9), "recorded_us": (1, 2)}
    assert ("pusd_per_hour", None, 7) in listed["gpu_contracts", "1"].fields
    assert listed["policy_sets", "1"].actor == "ann@host"
    assert listed["price_imports", "1"].actor == "bob"
    with engine.connect() as connection:
        assert [change.number for change in changes(connection, 2)] == [16, 15]


def test_no_secret_is_in_it(kept) -> None:
    engine, made = kept
    with engine.connect() as connection:
        said = str(connection.execute(select(orm.RegisterEntryRow.said)).scalars().all())
    assert made.key_id in said
    assert made.token.rpartition("_")[2] not in said
    assert "secret_hash" not in said
    assert "secret: 7" not in said


def test_a_key_is_revoked_once_and_a_contract_follows_a_contract(kept) -> None:
    engine, made = kept
    with engine.begin() as connection:
        revoke_key(connection, made.key_id, now_us=20)
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract("chat", None, 30)])
    assert AuditLog(engine).follow(at_us=31) == 2
    with engine.connect() as connection:
        last, revoked = changes(connection, 1)[0], changes(connection, 2)[1]
        assert (last.event, last.register) == ("revoked", "keys")
        assert last.fields == (("id", None, made.key_id), ("revoked_us", None, 20))
        assert ("pusd_per_hour", 9, None) in revoked.fields
        assert list(registers_hold(connection)) == []
        assert register_head(connection)[0] == 18


def test_an_invoice_is_entered_with_its_lines_and_when_it_is_posted(kept) -> None:
    engine, _ = kept
    post_invoice(engine, 1, by="ben@host", at_us=LATER_US)
    assert AuditLog(engine).follow(at_us=22) == 1
    with engine.connect() as connection:
        (posted,) = changes(connection, 1)
        assert (posted.register, posted.event, posted.actor) == ("invoices", "posted", "ben@host")
        assert posted.fields == (
            ("id", None, 1), ("posted_by", None, "ben@host"), ("posted_us", None, LATER_US),
        )  # fmt: skip
        (made,) = [
            change
            for change in changes(connection, 50)
            if (change.register, change.event) == ("invoices", "made")
        ]
        said = {name: new for name, _, new in made.fields}
        assert (made.actor, said["first_day"]) == ("ana@host", "2026-11-01")
        assert list(registers_hold(connection)) == []


def test_of_two_that_enter_at_once_one_gives_way(kept, monkeypatch) -> None:
    engine, _ = kept
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract("other", 1, 1)])
        taken = register_head(connection)
    AuditLog(engine).follow(at_us=1)
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract("third", 1, 1)])
    monkeypatch.setattr("ledger.seals.audit_log.register_head", lambda _: taken)
    assert AuditLog(engine).follow(at_us=2) == 0
    monkeypatch.undo()
    assert AuditLog(engine).follow(at_us=2) == 1


def test_many_rows_are_entered_in_steps(engine) -> None:
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [contract(f"p{n}", n, n) for n in range(7)])
    registers = AuditLog(engine, rows_at_once=3)
    assert [registers.follow(at_us=1) for _ in range(4)] == [3, 3, 1, 0]
    with engine.connect() as connection:
        assert list(registers_hold(connection)) == []


def test_idle_books_are_asked_in_one_statement_that_locks_nothing(kept) -> None:
    engine, _ = kept
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    assert AuditLog(engine).follow(at_us=10) == 0
    assert [words.split()[0] for words in asked if "register_entries" in words] == ["SELECT"]
    assert not any("IMMEDIATE" in words or "INSERT" in words for words in asked)
