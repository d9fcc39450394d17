"""Sets are numbered by who stores them, never by the database."""

from sqlalchemy import inspect

from ledger.orm import tables as orm


def test_a_set_has_one_number(engine):
    found = inspect(engine).get_pk_constraint("policy_sets")["constrained_columns"]
    assert found == ["number"]
    assert orm.PolicySetRow.__table__.c.number.autoincrement is False
