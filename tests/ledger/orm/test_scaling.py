"""Tables of fleets: an instance is there once; what is not known of a change is no zero."""

from sqlalchemy import inspect


def test_tokens_and_hours_are_there_once_and_an_expectation_may_be_unknown(engine):
    found = inspect(engine)
    assert found.get_pk_constraint("fleet_instances")["constrained_columns"] == ["token"]
    assert found.get_pk_constraint("fleet_hours")["constrained_columns"] == ["pool", "hour_us"]
    nullable = {column["name"]: column["nullable"] for column in found.get_columns("fleet_changes")}
    assert nullable["expected_pusd"]
    assert not nullable["realised_pusd"]
