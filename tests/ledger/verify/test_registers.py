"""Every edit of what the books are kept by is found, on either database."""

from dataclasses import replace

import pytest
from sqlalchemy import insert, text

from ledger.identity.keys import KeySpec, create_key, revoke_key
from ledger.invoices.books import post_invoice, store
from ledger.invoices.files import parse
from ledger.orm import tables as orm
from ledger.orm.tables import RegisterEntryRow
from ledger.seals import audit_log
from ledger.seals.audit_log import AuditLog, earlier_leaf_of, leaf_of, register_head
from ledger.verify.heads import entry_is_there
from ledger.verify.registers import EDITED, registers_hold

BILL = "date,item,amount\n2026-11-01,m,0.5\n2026-11-02,m,1\n2026-11-02,n,-0.1\n"
LATER_US = 1_800_000_000_000_000  # the invoices' days are over
CONTRACT = {"pool": "chat", "gpu_type": "H200", "gpus_per_replica": 1, "replicas": 2,
            "billing": "reserved", "pusd_per_hour": 7, "recorded_us": 1}  # fmt: skip


@pytest.fixture
def books(engine):
    with engine.begin() as connection:
        for name in ("ci", "old"):
            spec = KeySpec(name, team="search", user="ann", models=("m",), tags=(("a", "b"),))
            made = create_key(connection, spec, pepper=b"p" * 32, now_us=5)
        revoke_key(connection, made.key_id, now_us=6)
    with engine.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [CONTRACT, {**CONTRACT, "recorded_us": 2}])
        connection.execute(
            insert(orm.PolicySetRow),
            [{"number": 1, "document": "policies: []", "recorded_us": 3, "actor": "ann"}],
        )
        connection.execute(insert(orm.OverrideRow), [
            {"number": 1, "subject": "target:a", "says": "disabled", "recorded_us": 3,
             "actor": "ann"}])  # fmt: skip
        connection.execute(
            insert(orm.PriceImportRow),
            [{"at_us": 3, "actor": "bob", "origin": "x", "book": "deal.csv", "stored": 2}],
        )
        connection.execute(insert(orm.ConfigVersionRow), [
            {"hash": "h1", "yaml": "a: 1", "applied_us": 4}])  # fmt: skip
    for party in ("provider:a", "provider:b"):
        number = store(engine, parse(BILL), party=party, name="nov.csv", by="ana", at_us=5)
    post_invoice(engine, number, by="ben", at_us=LATER_US)
    while AuditLog(engine).follow(at_us=9):
        pass
    return engine


def findings(engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        return list(registers_hold(connection))


EDITS = {
    "a contract's rate": "UPDATE gpu_contracts SET pusd_per_hour = 6 WHERE id = 1",
    "a rate that is unknown now": "UPDATE gpu_contracts SET pusd_per_hour = NULL WHERE id = 2",
    "a contract's day": "UPDATE gpu_contracts SET recorded_us = 0 WHERE id = 2",
    "a contract that is gone": "DELETE FROM gpu_contracts WHERE id = 2",
    "who imported": "UPDATE price_imports SET actor = 'eve'",
    "what was imported": "UPDATE price_imports SET digest = 'x'",
    "an import that is gone": "DELETE FROM price_imports",
    "a policy set": "UPDATE policy_sets SET document = 'policies: [x]'",
    "who applied policies": "UPDATE policy_sets SET actor = 'eve'",
    "a policy set that is gone": "DELETE FROM policy_sets",
    "what an operator said": "UPDATE overrides SET says = 'nothing'",
    "an override that is gone": "DELETE FROM overrides",
    "a configuration": "UPDATE config_versions SET yaml = 'a: 2'",
    "a key's scopes": "UPDATE keys SET scopes = '[\"admin\"]' WHERE name = 'ci'",
    "a key's team's residency": "UPDATE teams SET residency = 'internal_only'",
    "a key's models": "UPDATE keys SET models = NULL",
    "a key's secret": "UPDATE keys SET secret_hash = X'78' WHERE name = 'ci'",
    "a key's end": "UPDATE keys SET expires_us = 9 WHERE name = 'ci'",
    "a key that is gone": "DELETE FROM keys WHERE name = 'ci'",
    "a key that is not revoked any more": "UPDATE keys SET revoked_us = NULL",
    "when a key was revoked": "UPDATE keys SET revoked_us = 7 WHERE name = 'old'",
    "a user": "UPDATE users SET name = 'eve'",
    "an organisation": "UPDATE organisations SET name = 'eve'",
    "whom an invoice is from": "UPDATE invoices SET party = 'provider:c' WHERE id = 1",
    "what an invoice comes to": "UPDATE invoices SET total_pusd = '9' WHERE id = 1",
    "who imported an invoice": "UPDATE invoices SET imported_by = 'eve' WHERE id = 2",
    "an invoice that is gone": "DELETE FROM invoices WHERE id = 1",
    "who posted an invoice": "UPDATE invoices SET posted_by = 'eve' WHERE id = 2",
    "when an invoice was posted": "UPDATE invoices SET posted_us = 7 WHERE id = 2",
    "an invoice that is not posted any more": "UPDATE invoices SET posted_us = NULL",
    "whose days a posted invoice has": "UPDATE invoices SET utc_offset_min = 60 WHERE id = 2",
    "an invoice's line": "UPDATE invoice_items SET amount_pusd = 1 WHERE id = 2",
    "whose an invoice's line is": "UPDATE invoice_items SET invoice_id = 1 WHERE id = 4",
    "a line's day": "UPDATE invoice_items SET day = '2026-11-03' WHERE id = 5",
    "a line's item": "UPDATE invoice_items SET item = 'n' WHERE id = 1",
    "a line that is gone": "DELETE FROM invoice_items WHERE id = 3",
    "a line that came later": "INSERT INTO invoice_items (invoice_id, day, item, amount_pusd)"
    " VALUES (1, '2026-11-02', 'm', 1)",
    "an entry's actor": "UPDATE register_entries SET actor = 'eve' WHERE register = 'policy_sets'",
    "an entry's words": "UPDATE register_entries SET said = '{}' WHERE number = 1",
    "an entry that is gone": "DELETE FROM register_entries WHERE number = 2",
    "an entry's leaf": "UPDATE register_entries SET leaf = X'78' WHERE number = 3",
}  # fmt: skip


def test_every_edit_is_found(books) -> None:
    """Each alone, and taken back: what is found is of that one."""
    assert findings(books) == []
    for edit, statement in EDITS.items():
        with books.connect() as connection:
            plain = statement if books.dialect.name == "sqlite" else statement.replace("X'", "'")
            connection.execute(text(plain))
            assert list(registers_hold(connection)), edit
            connection.rollback()
    assert findings(books) == []


@pytest.mark.parametrize("stated", [480, 0])
def test_an_invoices_zone_may_be_stated_until_it_is_posted(books, stated: int) -> None:
    """Red before: `verify` found an edit for good once a zone was found, or stated later."""
    again = replace(parse(BILL), offset_min=stated)
    assert store(books, again, party="provider:a", name="nov.csv", by="ana", at_us=6) == 1
    assert findings(books) == []
    post_invoice(books, 1, by="ben", at_us=LATER_US)
    assert findings(books) == []
    while AuditLog(books).follow(at_us=9):
        pass
    assert findings(books) == []
    for minutes in ("NULL", "60"):
        with books.connect() as connection:
            connection.execute(text(f"UPDATE invoices SET utc_offset_min = {minutes} WHERE id = 1"))
            assert list(registers_hold(connection)) == [("invoices 1", EDITED)]
            connection.rollback()


def test_entries_of_invoices_by_an_earlier_version_hold(books, monkeypatch) -> None:
    """It had the zone beside what was imported, and none where an invoice was posted."""
    monkeypatch.setattr(audit_log, "leaf_of", of_earlier_version)
    bill = replace(parse(BILL), offset_min=-240)
    number = store(books, bill, party="provider:c", name="nov.csv", by="ana", at_us=6)
    post_invoice(books, number, by="ben", at_us=LATER_US)
    while AuditLog(books).follow(at_us=9):
        pass
    monkeypatch.undo()
    assert findings(books) == []
    for change in ("party = 'provider:d'", "posted_by = 'eve'", "utc_offset_min = 60"):
        with books.connect() as connection:
            connection.execute(text(f"UPDATE invoices SET {change} WHERE id = {number}"))
            assert list(registers_hold(connection)) == [(f"invoices {number}", EDITED)]
            connection.rollback()


def of_earlier_version(connection, register, event, row) -> bytes:
    return earlier_leaf_of(connection, register, event, row) or leaf_of(
        connection, register, event, row
    )


def test_what_is_not_entered_yet_is_no_finding(books) -> None:
    with books.begin() as connection:
        connection.execute(insert(orm.GpuContractRow), [CONTRACT])
    assert findings(books) == []


def test_a_head_that_was_noted_tells_of_entries_that_are_gone(books) -> None:
    with books.begin() as connection:
        noted = register_head(connection)
        assert entry_is_there(connection, RegisterEntryRow, *noted)
        connection.execute(text(f"DELETE FROM register_entries WHERE number = {noted[0]}"))
    assert findings(books) == []  # the last ones are missed by nobody else
    with books.connect() as connection:
        assert not entry_is_there(connection, RegisterEntryRow, *noted)
