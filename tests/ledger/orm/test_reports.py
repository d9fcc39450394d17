"""A period's report has one turn at each place, which may not be over."""

from sqlalchemy import inspect


def test_a_turn_is_of_a_report_a_place_and_a_period(engine):
    key = inspect(engine).get_pk_constraint("report_turns")["constrained_columns"]
    assert key == ["name", "place", "start_us"]
    nullable = {
        column["name"]: column["nullable"] for column in inspect(engine).get_columns("report_turns")
    }
    assert nullable["told_us"]
    assert not nullable["due_us"]
