"""What a host tells of itself: sums within bounds, no counter, an age in place of a moment."""

import math

import pytest

from gateway.fleet.peers.peer_load import (
    MOST,
    NOTHING,
    PeerEngineLoad,
    is_sound,
    share_of,
    sum_loads,
)
from gateway.table_layout import LoadCell


def loads(**cells: float) -> list[float]:
    return [cells.get(name, 0.0) for name in LoadCell.__members__]


def test_what_is_in_flight_is_told_and_no_counter_is() -> None:
    told = loads(
        SEQUENCES=3, CONTEXT_TOKENS=900, QUEUED_PREFILL_TOKENS=80, PROMISED_TOKENS=1536,
        QUEUED_SEQUENCES=1, TIGHTEST_TPOT_MS=30, QUEUE_MOVED_S=98.5,
    )  # fmt: skip
    assert share_of(told, 100.0) == PeerEngineLoad(3, 900, 80, 1536, 1, 30, 1.5)
    counters = {name: 7.0 for name in LoadCell.__members__ if name.endswith("_TOTAL")}
    assert share_of(loads(**counters, HEARD_S=9, SILENT_S=9, ASK_AT_S=9), 10.0) == NOTHING


def test_an_empty_queue_has_no_age() -> None:
    assert share_of(loads(SEQUENCES=1, QUEUE_MOVED_S=5), 100.0).queue_moved_ago_s == 0.0


def test_what_drifted_below_nothing_is_nothing() -> None:
    drifted = share_of(loads(SEQUENCES=1, CONTEXT_TOKENS=-1e-9), 1.0)
    assert drifted == PeerEngineLoad(sequences=1)
    assert share_of(loads(PROMISED_TOKENS=1e18), 1.0).promised_tokens == MOST.promised_tokens
    assert all(is_sound(share) for share in (NOTHING, MOST, drifted))


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, 1e300])
@pytest.mark.parametrize("place", range(len(MOST)))
def test_no_host_has_such_numbers(place: int, value: float) -> None:
    assert not is_sound(NOTHING._replace(**{PeerEngineLoad._fields[place]: value}))


def test_hosts_add_up_but_for_promises_and_ages() -> None:
    assert sum_loads([]) == NOTHING
    load = PeerEngineLoad(1, 10, 100, 1000, 1, 50, 4.0)
    other = PeerEngineLoad(2, 20, 200, 2000, 1, 30, 3.0)
    idle = PeerEngineLoad(1, 5, 0, 64, 0, 0, 0)  # promises nothing, queues nothing
    assert sum_loads([load, other, idle]) == PeerEngineLoad(4, 35, 300, 3064, 2, 30, 3.0)
