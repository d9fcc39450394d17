"""The demo's demand: a month with a day, a week, growth and bursts; repeatable by its seed."""

import itertools
import random
from collections import Counter
from datetime import UTC, datetime

import pytest

from gateway.demo import demand

END_S = datetime(2026, 11, 20, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def month():
    return list(demand.month(random.Random(3), end_s=END_S, days=30, requests=20_000))


def test_about_as_many_as_asked_in_order_within_the_month(month):
    assert 19_000 < len(month) < 21_000
    times = [item.at_s for item in month]
    assert times == sorted(times)
    assert times[0] >= END_S - 30 * demand.DAY_S
    assert times[-1] < END_S


def test_a_seed_repeats_a_month(month):
    again = demand.month(random.Random(3), end_s=END_S, days=30, requests=20_000)
    assert list(itertools.islice(again, 500)) == month[:500]


def test_nights_and_weekends_are_quiet_and_the_month_grows(month):
    hours = Counter(datetime.fromtimestamp(item.at_s, UTC).hour for item in month)
    assert hours[14] > 4 * hours[3]
    weekdays = Counter(datetime.fromtimestamp(item.at_s, UTC).weekday() for item in month)
    assert max(weekdays[5], weekdays[6]) < 0.6 * min(weekdays[day] for day in range(5))
    week = 7 * demand.DAY_S
    first = sum(item.at_s < END_S - 30 * demand.DAY_S + week for item in month)
    last = sum(item.at_s >= END_S - week for item in month)
    assert last > 2 * first


def test_working_days_have_a_burst(month):
    minutes = Counter(int(item.at_s // 300) for item in month)
    usual = sorted(minutes.values())[len(minutes) // 2]
    assert max(minutes.values()) > 8 * usual


def test_teams_have_their_share_and_their_lengths(month):
    teams = Counter(item.team.name for item in month)
    for team in demand.TEAMS:
        mine = sorted(item.prompt_tokens for item in month if item.team is team)
        assert teams[team.name] / len(month) == pytest.approx(team.share, abs=0.02)
        assert mine[len(mine) // 2] == pytest.approx(team.prompt_tokens, rel=0.1)
        assert mine[-1] <= demand.PROMPT_LIMIT_TOKENS
    assert any(item.patience is not None for item in month)


def test_a_team_has_one_constant_prefix_of_its_own(month):
    prefixes = {item.team.name: set() for item in month}
    for item in month:
        prefixes[item.team.name].add(item.hashes)
    assert all(len(prefix) == 1 for prefix in prefixes.values())
    blocks = [set(next(iter(prefix))) for prefix in prefixes.values()]
    assert len(set.union(*blocks)) == sum(map(len, blocks))


def test_the_live_pace_has_bursts():
    gaps = itertools.islice(demand.pace(random.Random(1), per_s=2.0), 4000)
    times = list(itertools.accumulate(gaps))
    busy = sum(at_s % 120 < 20 for at_s in times) / (20 / 120 * times[-1])
    calm = sum(at_s % 120 >= 20 for at_s in times) / (100 / 120 * times[-1])
    assert busy / calm == pytest.approx(3.0, rel=0.2)
    assert calm == pytest.approx(2.0, rel=0.1)
