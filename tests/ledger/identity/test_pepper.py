"""One pepper for all hosts of a ledger: another one is refused before every key gets 401."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from ledger.identity.keys import KeySpec, create_key, load_pepper, revoke_key
from ledger.identity.pepper import FINGERPRINT, PepperMismatch, agreed_pepper, fingerprint
from ledger.orm import tables as orm

NOW_US = 1_780_000_000_000_000


@pytest.fixture
def state(tmp_path):
    def make(name):
        (tmp_path / name).mkdir(exist_ok=True)
        return tmp_path / name

    return make


def agree(engine, state_dir):
    with engine.begin() as connection:
        return agreed_pepper(connection, state_dir)


def a_key(engine, pepper, **spec):
    with engine.begin() as connection:
        return create_key(connection, KeySpec("k", **spec), pepper=pepper, now_us=NOW_US).key_id


def test_the_first_host_makes_it_and_others_need_a_copy(engine, state):
    pepper = agree(engine, state("a"))
    a_key(engine, pepper)
    assert agree(engine, state("a")) == pepper
    with pytest.raises(PepperMismatch, match=r"pepper is missing.*copy the file"):
        agree(engine, state("b"))
    assert not (state("b") / "pepper").exists()  # none that would be another one ever after
    shutil.copy(state("a") / "pepper", state("b") / "pepper")
    assert agree(engine, state("b")) == pepper


def test_another_one_is_told_while_a_key_needs_the_first(engine, state):
    key = a_key(engine, agree(engine, state("a")))
    other = load_pepper(state("b"))
    with pytest.raises(PepperMismatch, match="would get 401"):
        agree(engine, state("b"))
    with engine.begin() as connection:
        revoke_key(connection, key, now_us=NOW_US)
    assert agree(engine, state("b")) == other
    a_key(engine, other)
    with pytest.raises(PepperMismatch):
        agree(engine, state("a"))


def test_a_key_that_expired_needs_none(engine, state):
    a_key(engine, agree(engine, state("a")), expires_us=NOW_US + 1)
    assert agree(engine, state("b")) == load_pepper(state("b"))


def test_a_ledger_of_before_learns_whose_pepper_it_has(engine, state):
    pepper = load_pepper(state("a"))
    a_key(engine, pepper)
    with pytest.raises(PepperMismatch, match="missing"):  # who has none has not made these keys
        agree(engine, state("b"))
    assert agree(engine, state("a")) == pepper
    load_pepper(state("b"))
    with pytest.raises(PepperMismatch):
        agree(engine, state("b"))


def test_of_two_first_hosts_one_wins(engine, state):
    places = [state(f"h{number}") for number in range(6)]

    def begin(place):
        try:
            return agree(engine, place)
        except PepperMismatch:
            return None

    with ThreadPoolExecutor(len(places)) as pool:
        found = list(pool.map(begin, places))
    a_key(engine, next(pepper for pepper in found if pepper is not None))
    assert len([place for place in places if begin(place) is not None]) == 1


def test_the_fingerprint_fits_its_column_and_is_not_the_pepper(engine, state):
    pepper = agree(engine, state("a"))
    with engine.connect() as connection:
        query = select(orm.MetaRow.value).where(orm.MetaRow.name == FINGERPRINT)
        assert connection.execute(query).scalar_one() == fingerprint(pepper)
    assert fingerprint(b"\xff" * 32) != fingerprint(b"\0" * 32)
    assert fingerprint(pepper).to_bytes(8) not in (pepper, pepper[:8])
