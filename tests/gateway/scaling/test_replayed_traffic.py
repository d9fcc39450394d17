"""Recorded minutes played with a planner: each once, in their days, the day before learned from."""

import pytest

from gateway.config.schema_scale import ScaleSection
from gateway.scaling import replayed_traffic
from gateway.scaling.pool_setup import PoolSetup
from gateway.scaling.replayed_traffic import UnknownDemandError, replay_traffic
from ledger.economics.scaling_score import InstanceRent
from ledger.reports.fleet_demand import DemandedClass
from router.scaling.plan import EngineWorth, ScalePlan, ScaleReason

S, USD = 1_000_000, 10**12
DAY_US = 86_400 * S
BEGAN_US = 20_000 * DAY_US
SECTION = ScaleSection.model_validate({"max": 2, "start_s": 60})
SETUP = PoolSetup("p", SECTION, ("chat",), 1, InstanceRent(60 * USD), 60.0, "Europe/Berlin")
CHAT = DemandedClass("chat", S, USD, movable=True)


class OneEngine:
    """Wants one, and counts what it is told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def observe(self, window) -> None:
        self.told.append(window.ends_us)

    def plan(self, state) -> ScalePlan:
        worth = EngineWorth(1, USD, USD)
        return ScalePlan(
            "p", state.at_us, 1, len(state.engines), (), 60.0, None, worth, (), (),
            ScaleReason.HOLD, "", state.at_us,
        )  # fmt: skip

    def memory(self) -> dict[str, object]:
        return {}


@pytest.fixture
def books(monkeypatch):
    """Books with so many requests in each minute since a first one."""

    def make(each: int, first_us: int | None, classes=(CHAT,)) -> None:
        def arrivals(_connection, _models, start_us, end_us):
            return {at: {"chat": each} for at in range(start_us, end_us, 60 * S) if at >= first_us}

        def running(*span):
            return {at: {"chat": 10**6 * n["chat"]} for at, n in arrivals(*span).items()}

        monkeypatch.setattr(replayed_traffic, "arrivals", arrivals)
        monkeypatch.setattr(replayed_traffic, "running_ppm", running)
        monkeypatch.setattr(replayed_traffic, "first_arrival_us", lambda *_: first_us)
        monkeypatch.setattr(replayed_traffic, "demanded_classes", lambda *_: classes)

    return make


def test_each_minute_is_played_once_and_the_day_before_is_learned_from(books):
    books(30, BEGAN_US - 2 * DAY_US)
    planner = OneEngine()
    span = (BEGAN_US + 30 * S, BEGAN_US + DAY_US + 30 * S)
    days = replay_traffic(None, SETUP, span, lambda: planner)
    assert [day.date for day in days] == ["2024-10-04", "2024-10-05"]  # of the reporting zone
    assert sum(day.span.requests for day in days) == 30 * 1440
    assert planner.told == [BEGAN_US - DAY_US + 60 * S * (each + 1) for each in range(2 * 1440)]
    whole = days[0].span + days[1].span
    assert whole.advised.total_pusd == 1440 * USD  # a dollar a minute; all fits
    assert whole.as_configured.total_pusd == 1440 * USD
    assert whole.all_api.total_pusd == 30 * 1440 * USD


def test_what_came_before_the_first_request_is_not_played(books):
    books(30, BEGAN_US + DAY_US // 2)
    span = (BEGAN_US, BEGAN_US + DAY_US)
    days = replay_traffic(None, SETUP, span, OneEngine)
    assert sum(day.span.covered_us for day in days) == DAY_US // 2


@pytest.mark.parametrize(
    ("first_us", "classes", "words"),
    [
        (None, (CHAT,), "no traffic"),
        (BEGAN_US + DAY_US, (CHAT,), "no traffic"),
        (BEGAN_US, None, "not known yet"),
        (BEGAN_US, (), "not known yet"),
    ],
)
def test_what_is_not_known_is_said(books, first_us, classes, words):
    books(30, first_us, classes)
    with pytest.raises(UnknownDemandError, match=words):
        replay_traffic(None, SETUP, (BEGAN_US, BEGAN_US + DAY_US), OneEngine)
