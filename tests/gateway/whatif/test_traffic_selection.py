"""What is asked about, found: names that exist, engines that somebody knows."""

import pytest

from gateway.whatif.traffic import Arrival
from gateway.whatif.traffic_selection import (
    TrafficSelection,
    WhatIfInputError,
    arrange_traffic,
    engine_model_source,
    house_of,
    pool_and_model,
)

ARRIVALS = [Arrival(0.0, 10, 5, "chat"), Arrival(4.0, 10, 5, "old")]
TRAFFIC = TrafficSelection(ARRIVALS, 10**15, {}, {})


def test_names_are_replaced_and_time_runs_faster(under) -> None:
    found = arrange_traffic(under("tight"), TRAFFIC, ["old=inside"], 2.0)
    assert [(arrival.at_s, arrival.model) for arrival in found.arrivals] == [
        (0.0, "chat"),
        (2.0, "inside"),
    ]
    plain = arrange_traffic(under("tight"), TRAFFIC, ["chat"], 1.0)
    assert {arrival.model for arrival in plain.arrivals} == {"chat"}


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ([], "there is no model `old`"),
        (["a", "b"], "without FROM= is enough"),
        (["nothing"], "there is no model `nothing`"),
    ],
)
def test_a_name_that_nobody_has_is_told_with_those_that_are(under, named, words) -> None:
    with pytest.raises(WhatIfInputError, match=words):
        arrange_traffic(under("tight"), TRAFFIC, named, 1.0)
    nameless = TrafficSelection([Arrival(0.0, 10, 5, "")], 10**15, {}, {})
    with pytest.raises(WhatIfInputError, match="names no model"):
        arrange_traffic(under("tight"), nameless, [], 1.0)


def test_an_engine_is_named_by_pool_and_profile() -> None:
    word = "chat=h100-llama-3.1-8b-fp8"
    assert engine_model_source(word, pool_and_model(word)[1]).source.startswith("profile h100")
    for bad in ("chat", "=x", "chat="):
        with pytest.raises(WhatIfInputError, match="write POOL=PROFILE"):
            pool_and_model(bad)
    with pytest.raises(WhatIfInputError, match="name a profile or a file"):
        engine_model_source("chat=/etc/passwd", "/etc/passwd")


def test_a_house_has_the_engines_of_the_pools_that_are_asked(under, house) -> None:
    traffic = TrafficSelection(ARRIVALS[:1], 10**15, {}, {})
    found = house_of(under("tight"), house.prices, traffic, {}, None)
    assert list(found.engines) == ["chat"]
    assert found.start_us == found.calendar.from_us == 10**15


def test_policies_hours_are_those_in_which_the_requests_came(under, house) -> None:
    traffic = TrafficSelection(ARRIVALS[:1], 10**15, {}, {}, came_us=5 * 10**14)
    faster = arrange_traffic(under("tight"), traffic, [], 4.0)
    found = house_of(under("tight"), house.prices, faster, {}, None)
    assert found.start_us == 10**15
    assert found.calendar.wall_us(900.0) == 5 * 10**14 + 3600 * 10**6
