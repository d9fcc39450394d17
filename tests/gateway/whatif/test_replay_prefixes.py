"""Own engines' prefix caches in virtual time: sessions stay where their beginnings are."""

from dataclasses import replace

import pytest

from gateway.config.settings import Settings
from gateway.whatif.apis import ApiLatency
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay
from gateway.whatif.replay_fleet import ReplayFleet
from gateway.whatif.traffic import Arrival

SESSIONS, TURNS = 12, 8


@pytest.fixture(scope="module")
def replicas(house, under) -> tuple[ReplayFleet, Settings]:
    """Three engines of the small house."""
    document = under("loose").model_dump(mode="json")
    document["pools"]["chat"]["engine"]["replicas"] = 3
    settings = Settings.model_validate(document)
    return ReplayFleet(settings, house.prices, house.engines, {}, 10**15), settings


def turns(session: str = "s{}") -> list[Arrival]:
    """Each turn's prompt goes on from the one before; all begin within a second."""
    return sorted(
        Arrival(
            5.0 * turn + 0.07 * number, 2048 * (turn + 1), 20, "chat",
            session=session.format(number),
        )
        for turn in range(TURNS)
        for number in range(SESSIONS)
    )  # fmt: skip


def play(
    replicas: tuple[ReplayFleet, Settings], arrivals: list[Arrival]
) -> tuple[float, list[str | None]]:
    """Return the share of prompts' tokens that engines' caches had, and who served each."""
    house, settings = replicas
    planned = PolicyReplay(house, settings, arrivals[-1].at_s)
    answers = [ApiLatency(5.0, 0.1)] * len(arrivals)
    outcomes = Replay(planned.seats, {}, arrivals, answers).run(planned)
    totals = [seat.engine.totals for seat in planned.seats]
    asked = sum(each.prefix_queries for each in totals)
    share = sum(each.prefix_hits for each in totals) / asked
    return share, [outcome.engine for outcome in outcomes]


def test_a_session_goes_on_at_the_engine_that_has_its_beginning(replicas) -> None:
    """All but each session's new part is found, once the first turns have shown that it is."""
    best = sum(range(TURNS)) / sum(range(1, TURNS + 1))
    assert play(replicas, turns())[0] > 0.85 * best


def test_prompts_that_share_nothing_find_nothing(replicas) -> None:
    """The control of the test above."""
    arrivals = [each._replace(session=str(place)) for place, each in enumerate(turns())]
    assert play(replicas, arrivals)[0] == 0.0


def test_an_engine_without_a_prefix_cache_is_not_believed_to_have_one(house, replicas) -> None:
    """What was expected and never found is not counted on: the load decides alone."""
    _, settings = replicas
    known = house.engines["chat"]
    shape = replace(known.shape, prefix_caching=False)
    bare = ReplayFleet(settings, house.prices, {"chat": replace(known, shape=shape)}, {}, 10**15)
    share, engines = play((bare, settings), turns())
    assert share == 0.0
    assert engines == play((bare, settings), [each._replace(session="") for each in turns()])[1]
