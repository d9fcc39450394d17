"""Keys are made, rotated and revoked by somebody: rows that nobody edits, an end that holds."""

import pytest
from sqlalchemy import select, text

from ledger.identity.keychanges import ChangeAuthor, find_key, known_keys, make, revoke, rotate
from ledger.identity.keys import IdentityError, KeySpec
from ledger.orm import tables as orm
from ledger.seals.audit_log import AuditLog, changes
from ledger.verify.registers import registers_hold

NOW_US = 1_780_000_000_000_000
HOUR_US = 3_600_000_000
PEPPER = b"p" * 32


def ann(at_us: int = NOW_US) -> ChangeAuthor:
    return ChangeAuthor("ann", "why", at_us)


@pytest.fixture
def connection(engine):
    with engine.connect() as found:
        yield found


@pytest.fixture
def old(connection):
    spec = KeySpec("app", team="search", scopes=("usage",), models=("chat",), tags=(("a", "b"),))
    made = make(connection, spec, ann(), pepper=PEPPER)
    connection.commit()
    return made


def turned(connection, old, **given):
    ends_us = given.pop("ends_us", NOW_US + HOUR_US)
    made = rotate(connection, old.key_id, ann(), pepper=PEPPER, ends_us=ends_us, **given)
    connection.commit()
    return made


def generation(connection) -> int:
    return connection.execute(select(orm.MetaRow.value)).scalar_one()


def test_a_successor_may_do_the_same_and_the_old_one_ends_by_itself(connection, old) -> None:
    before = generation(connection)
    made = turned(connection, old)
    first, second = known_keys(connection, "search")
    assert {first.id, second.id} == {old.key_id, made.key_id}
    item, other = (find_key(connection, key.key_id) for key in (old, made))
    assert item._replace(id="", ends_us=None) == other._replace(id="", line=None, counts_on=None)
    assert (other.line, other.counts_on) == (old.key_id, [old.key_id])
    assert (item.state(NOW_US), item.state(NOW_US + HOUR_US)) == ("ending", "expired")
    assert other.state(NOW_US + HOUR_US) == "active"
    assert generation(connection) > before


def test_a_rotated_key_is_still_revoked_at_once(connection, old) -> None:
    turned(connection, old)
    revoke(connection, old.key_id, ann(NOW_US + 1))
    connection.commit()
    assert find_key(connection, old.key_id).state(NOW_US + 1) == "revoked"


def test_only_an_active_key_is_rotated(connection, old) -> None:
    made = turned(connection, old)
    with pytest.raises(IdentityError, match="is ending"):
        turned(connection, old)
    revoke(connection, made.key_id, ann())
    with pytest.raises(IdentityError, match="is revoked"):
        turned(connection, made)
    with pytest.raises(IdentityError, match="no key has the id"):
        find_key(connection, "none")


def test_an_old_keys_expiry_is_the_new_ones_unless_it_is_told_otherwise(connection) -> None:
    ends_us = NOW_US + 3 * HOUR_US
    spec = KeySpec("app", expires_us=ends_us)
    first = make(connection, spec, ann(), pepper=PEPPER)
    second = turned(connection, first)
    third = turned(connection, second, expires_us=NOW_US + 9 * HOUR_US)
    found = [find_key(connection, item.key_id).expires_us for item in (second, third)]
    assert found == [ends_us, NOW_US + 9 * HOUR_US]
    assert find_key(connection, first.key_id).over_us == NOW_US + HOUR_US


def test_another_team_has_other_keys(connection, old) -> None:
    assert known_keys(connection, "other") == []


def test_the_log_says_who_did_what_and_finds_an_end_that_was_moved(engine, connection, old) -> None:
    made = turned(connection, old)
    revoke(connection, old.key_id, ann())
    revoke(connection, old.key_id, ChangeAuthor("bob", None, NOW_US + 5))  # no change, so no entry
    connection.commit()
    while AuditLog(engine).follow(at_us=NOW_US + 9):
        pass
    with engine.connect() as other:
        found = [change for change in changes(other, 99) if change.register == "key_changes"]
        said = [{name: new for name, _, new in finding.fields} for finding in reversed(found)]
        assert [(finding.actor, finding.row) for finding in reversed(found)] == [
            ("ann", "1"), ("ann", "2"), ("ann", "3"), ("ann", "4"),
        ]  # fmt: skip
        assert [line.get("event") for line in said] == ["made", "made", "rotated", "revoked"]
        assert said[2]["successor"] == made.key_id
        assert "secret" not in str(found)
        assert list(registers_hold(other)) == []
    with engine.begin() as other:
        other.execute(text("UPDATE key_changes SET ends_us = ends_us + 1"))
        assert list(registers_hold(other)) != []
