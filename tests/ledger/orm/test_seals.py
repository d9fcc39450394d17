"""Links are numbered by the chain, never by the database."""

from sqlalchemy import inspect

from ledger.orm import tables as orm


def test_a_link_has_one_number_and_a_mark_one_place(engine):
    found = inspect(engine)
    assert found.get_pk_constraint("seals")["constrained_columns"] == ["number"]
    keys = found.get_pk_constraint("seal_marks")["constrained_columns"]
    assert keys == ["number", "attempt_seq"]
    assert orm.SealRow.__table__.c.number.autoincrement is False
