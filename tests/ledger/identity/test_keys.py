"""Keys are made once, stored hashed, and revoked for good."""

import stat

import pytest
from sqlalchemy import select, text

from ledger.identity.keys import IdentityError, KeySpec, create_key, load_pepper, revoke_key
from ledger.orm import tables as orm

NOW_US = 1_780_000_000_000_000


def make(engine, **changes):
    with engine.begin() as connection:
        spec = KeySpec(**{"name": "laptop", **changes})
        return create_key(connection, spec, pepper=b"p" * 32, now_us=NOW_US)


def generation(engine):
    with engine.connect() as connection:
        return connection.execute(select(orm.MetaRow.value)).scalar_one_or_none()


def test_owners_are_made_on_demand_and_reused(engine):
    make(engine, team="search", org="acme", user="ann")
    make(engine, team="search", org="acme", user="ann")
    with engine.connect() as connection:
        assert connection.execute(select(orm.OrganisationRow.id)).scalars().all() == ["acme"]
        columns = orm.TeamRow.org_id, orm.TeamRow.residency, orm.TeamRow.isolation
        assert connection.execute(select(*columns)).all() == [("acme", "any", "team")]
        assert len(connection.execute(select(orm.KeyRow.id)).all()) == 2


def test_the_secret_is_long_shown_once_and_nowhere_in_the_database(engine):
    key = make(engine)
    _, key_id, secret = key.token.split("_")
    assert key_id == key.key_id
    assert len(bytes.fromhex(secret)) * 8 >= 160
    assert secret not in repr(key)
    with engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM keys")).one()
    assert secret not in repr(row)
    assert bytes.fromhex(secret) not in [bytes(value) for value in row if isinstance(value, bytes)]


def test_every_change_raises_the_generation(engine):
    assert generation(engine) is None
    key = make(engine)
    assert generation(engine) == 1
    with engine.begin() as connection:
        revoke_key(connection, key.key_id, now_us=NOW_US + 1)
    assert generation(engine) == 2
    with engine.begin() as connection:
        revoke_key(connection, key.key_id, now_us=NOW_US + 2)
        assert connection.execute(select(orm.KeyRow.revoked_us)).all() == [(NOW_US + 1,)]
    assert generation(engine) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"expires_us": NOW_US},
        {"team": ""},
        {"user": "a\nb"},
        {"user": "*"},
        {"team": "*"},
        {"team": " search"},
        {"org": "acme "},
        {"residency": "moon"},
        {"name": ""},
        {"name": "a\0b"},
        {"name": "x" * 257},
        {"models": ("a\r\nb",)},
        {"models": ("x" * 257,)},
        {"tags": (("app", "a\0b"),)},
        {"tags": (("a\nb", "web"),)},
        {"tags": (("a=b", "web"),)},
        {"tags": (("*", "web"),)},
    ],
)
def test_faulty_specifications_are_refused(engine, changes):
    with pytest.raises(IdentityError):
        make(engine, **changes)
    assert generation(engine) is None


def test_a_team_belongs_to_one_organisation(engine):
    make(engine, team="search", org="acme")
    with pytest.raises(IdentityError, match="belongs to `acme`"):
        make(engine, team="search", org="other")


def test_an_unknown_key_cannot_be_revoked(engine):
    with engine.begin() as connection, pytest.raises(IdentityError):
        revoke_key(connection, "none", now_us=NOW_US)


def test_the_pepper_is_made_once_and_private(tmp_path):
    first = load_pepper(tmp_path / "state")
    assert load_pepper(tmp_path / "state") == first
    assert len(first) == 32
    (path,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
