"""A pool's section as terms, rules and quiet times."""

import pytest

from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.scaling.pool_setup import pool_setups

TEXT = """
timezone: Europe/Berlin
models:
  chat: {targets: ["pool:a", "openai/x"]}
  other: {targets: ["pool:b"]}
pools:
  a:
    engine: {model: /m, replicas: 4}
    gpu: {type: H200, count: 2, usd_per_hour: 3, billing: on_demand}
    scale:
      {max: 3, min: 1, billing: hour, least_s: 600, limit_usd_per_day: 50, reserved: 1,
       quiet: [{days: [mon], starts: "22:00", ends: "06:00", timezone: Europe/Berlin}]}
  b:
    engine: {model: /m, replicas: 1}
    gpu: {type: H200}
"""
MONDAY_22_UTC_US = 1_795_471_200_000_000  # 23 November 2026, 22:00 UTC, 23:00 in Berlin
HOUR_US = 3_600_000_000


@pytest.fixture
def setup():
    settings = draft_settings(read_document(TEXT)).settings
    (found,) = pool_setups(settings)
    return found


def test_a_pool_is_as_its_section_says(setup):
    assert (setup.pool, setup.models, setup.places) == ("a", ("chat",), 4)
    assert setup.rent.pusd_per_hour == 6 * 10**12
    assert (setup.rent.unit_s, setup.rent.least_s) == (3600, 600)
    assert (setup.acts, setup.limit_pusd) == (False, 50 * 10**12)
    terms = setup.pool_terms()
    assert (terms.least, terms.most, terms.rent.reserved, terms.start_s) == (1, 3, 1, 180.0)
    assert setup.pool_terms(42.0).start_s == 42.0
    rules = setup.rules(ordered=True, adopts=False, can_start=2)
    assert (rules.least, rules.most, rules.can_start, rules.ordered) == (1, 3, 2, True)
    score = setup.score_terms()
    assert (score.fixed_engines, score.most) == (4, 4)


def test_quiet_times_are_of_their_zone_and_belong_to_the_day_that_they_begin_on(setup):
    assert setup.is_quiet(MONDAY_22_UTC_US)
    assert setup.is_quiet(MONDAY_22_UTC_US + 6 * HOUR_US)
    assert not setup.is_quiet(MONDAY_22_UTC_US + 7 * HOUR_US)
    assert not setup.is_quiet(MONDAY_22_UTC_US + 24 * HOUR_US)
