"""Traffic for a planner: first attempts by minute and class, priced as the verdict prices them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert, update

from ledger.orm import tables as orm
from ledger.reports import fleet_demand
from ledger.spans import DAY_US

MINUTE_US = 60_000_000


def test_arrivals_are_first_attempts_by_the_minute_wherever_they_went(engine, traffic):
    opened = [first for first, _ in traffic]
    start_us = min(item.opened_us for item in opened) // MINUTE_US * MINUTE_US
    end_us = start_us + DAY_US
    with engine.begin() as connection:
        first = opened[0].attempt_id
        retry = update(orm.AttemptRow).where(orm.AttemptRow.attempt_id == first)
        connection.execute(update(orm.AttemptRow).values(attempt_no=1))
        connection.execute(retry.values(attempt_no=2))
    wanted = Counter(
        (item.opened_us // MINUTE_US * MINUTE_US, item.model)
        for item in opened[1:]
        if start_us <= item.opened_us < end_us and item.model == "code"
    )
    with engine.connect() as connection:
        found = fleet_demand.arrivals(connection, ["code"], start_us, end_us)
        assert fleet_demand.first_arrival_us(connection, ["code"]) == min(
            item.opened_us for item in opened if item.model == "code"
        )
        assert fleet_demand.first_arrival_us(connection, ["nobody"]) is None
    assert {(at, name): n for at, names in found.items() for name, n in names.items()} == wanted


def test_teams_that_stay_inside_are_a_class_of_their_own(engine, traffic):
    with engine.begin() as connection:
        connection.execute(update(orm.AttemptRow).values(attempt_no=1))
        connection.execute(delete(orm.TeamRow).where(orm.TeamRow.id == "search"))
        house = {"id": "o", "name": "o", "created_us": 0}
        connection.execute(insert(orm.OrganisationRow).values(**house))
        row = {"id": "search", "name": "search", "org_id": "o", "residency": "internal_only"}
        connection.execute(insert(orm.TeamRow).values(**row, isolation="team", created_us=0))
    opened = [first for first, _ in traffic]
    start_us = min(item.opened_us for item in opened) // MINUTE_US * MINUTE_US
    with engine.connect() as connection:
        found = fleet_demand.arrivals(connection, ["code"], start_us, start_us + 4 * DAY_US)
    names = Counter(name for counts in found.values() for name in counts)
    assert set(names) == {"code", "code of teams and keys that stay inside"}


@given(opened_us=st.integers(0, 10**9), length_us=st.integers(1, 10 * MINUTE_US))
def test_a_request_is_spread_over_the_minutes_in_which_it_ran(opened_us, length_us):
    parts = dict(fleet_demand.spread_ppm(opened_us, opened_us + length_us))
    assert sum(parts.values()) == 10**6
    for minute_us, ppm in parts.items():
        begins_us = max(minute_us, opened_us)
        ran_us = min(minute_us + MINUTE_US, opened_us + length_us) - begins_us
        assert abs(ppm - 10**6 * ran_us / length_us) <= 1


@given(
    opened_us=st.integers(0, 10**9),
    length_us=st.integers(0, 10 * MINUTE_US),
    usual_us=st.integers(0, 10 * MINUTE_US),
)
def test_a_minute_of_what_goes_on_is_known_when_it_is_over(opened_us, length_us, usual_us):
    """Nothing that ends later changes it, parts add up, and none is after the end."""
    ended_us = opened_us + length_us
    parts = dict(fleet_demand.passing_ppm(opened_us, ended_us, usual_us))
    assert sum(parts.values()) == 10**6
    assert max(parts) <= max(opened_us, ended_us - 1)
    goes_on = dict(fleet_demand.passing_ppm(opened_us, 2**62, usual_us))
    for minute_us, ppm in parts.items():
        if minute_us + MINUTE_US < ended_us:
            assert goes_on[minute_us] == ppm
    assert max(goes_on) < max(opened_us + 1, opened_us + usual_us)


def test_what_still_runs_is_counted_by_its_usual_time_and_once(engine, traffic):
    """A request of four minutes where two are usual, one that runs on, and one that ended early."""
    start_us = min(item.opened_us for item, _ in traffic) // MINUTE_US * MINUTE_US
    lengths_us = (4 * MINUTE_US, None, 90_000_000)
    row = orm.AttemptRow
    with engine.begin() as connection:
        connection.execute(update(row).values(attempt_no=2))
        for (item, _), length_us in zip(traffic[:3], lengths_us, strict=False):
            settled_us = None if length_us is None else start_us + length_us
            ran = {"attempt_no": 1, "opened_us": start_us, "settled_us": settled_us}
            mine = row.attempt_id == item.attempt_id
            connection.execute(update(row).where(mine).values(**ran, model="code"))
    with engine.connect() as connection:
        span = (connection, ["code"], start_us, start_us + DAY_US)
        known_us = start_us + 5 * MINUTE_US
        (usual_us,) = fleet_demand.usual_times(*span, known_us).values()
        assert usual_us == (4 + 5 + 1.5) * MINUTE_US // 3
        (name,) = fleet_demand.arrivals(*span)[start_us]
        usual = [fleet_demand.UsualTimes(0, {name: 2 * MINUTE_US})]
        found = fleet_demand.running_ppm(*span, usual)
        later_us = start_us + MINUTE_US
        rest = fleet_demand.running_ppm(connection, ["code"], later_us, later_us + DAY_US, usual)
        unknown = fleet_demand.running_ppm(*span, [])
    assert found == {start_us: {name: 1_500_000}, later_us: {name: 1_500_000}}
    assert rest == {later_us: {name: 1_500_000}}
    assert unknown == {start_us: {name: 3_000_000}}


@pytest.mark.parametrize("minutes", [(20, 5), (5, 20), (0, 20), (10, 11), (20, 20)])
def test_a_request_keeps_the_usual_time_of_its_opening(engine, traffic, minutes):
    """Minutes are read one by one, and the usual time changes after ten of them: it counted .5 to
    1.5 requests for one.
    """
    start_us = min(item.opened_us for item, _ in traffic) // MINUTE_US * MINUTE_US
    mine = traffic[0][0].attempt_id
    row = orm.AttemptRow
    with engine.begin() as connection:
        connection.execute(update(row).values(attempt_no=2))
        ran = {"attempt_no": 1, "opened_us": start_us, "settled_us": start_us + 20 * MINUTE_US}
        connection.execute(update(row).where(row.attempt_id == mine).values(**ran, model="code"))
    with engine.connect() as connection:
        (name,) = fleet_demand.arrivals(connection, ["code"], start_us, start_us + DAY_US)[start_us]
        usual = [
            fleet_demand.UsualTimes(start_us + at * MINUTE_US, {name: length * MINUTE_US})
            for at, length in zip((0, 10), minutes, strict=True)
        ]
        counted = 0
        for minute in range(25):
            at_us = start_us + minute * MINUTE_US
            known = [each for each in usual if each.from_us <= at_us]
            span = (connection, ["code"], at_us, at_us + MINUTE_US)
            counted += fleet_demand.running_ppm(*span, known).get(at_us, {}).get(name, 0)
    assert counted == 10**6


def test_what_ran_in_a_minute_is_read_with_what_began_before_it(engine, traffic):
    """A request of four minutes counts a quarter in each, also from the middle of it on."""
    start_us = min(item.opened_us for item, _ in traffic) // MINUTE_US * MINUTE_US
    long = traffic[0][0].attempt_id
    row = orm.AttemptRow
    with engine.begin() as connection:
        connection.execute(update(row).values(attempt_no=2))
        ran = {"attempt_no": 1, "opened_us": start_us, "settled_us": start_us + 4 * MINUTE_US}
        connection.execute(update(row).where(row.attempt_id == long).values(**ran, model="code"))
    with engine.connect() as connection:
        whole = fleet_demand.running_ppm(connection, ["code"], start_us, start_us + DAY_US)
        later_us = start_us + 2 * MINUTE_US
        rest = fleet_demand.running_ppm(connection, ["code"], later_us, start_us + DAY_US)
    (name,) = whole[start_us]
    quarters = {start_us + each * MINUTE_US: {name: 250_000} for each in range(4)}
    assert whole == quarters
    assert rest == {at: counts for at, counts in quarters.items() if at >= later_us}
