"""Reads of the fleet: of the view's period and its engines, and none of a host that is not told."""

from dashboard.data import fleet, reads
from dashboard.viewer_identity import AT_THIS_MACHINE
from ledger.database import make_engine
from ledger.policies import PolicySet, store_policies
from ledger.queries.reads import DAY_US, HOUR_US


def test_what_is_read_is_of_the_period(books) -> None:
    filled = books(peak=4.0, days=2)
    engine = make_engine(filled.url)
    for number, age_us in ((1, 30 * DAY_US), (2, 3 * HOUR_US), (3, -HOUR_US)):
        at_us = filled.now_us - age_us
        store_policies(engine, PolicySet(number, None, at_us, "ann"))
    engine.dispose()
    view = reads.DashboardView(filled.url, "24 h", None, filled.now_us, who=lambda: AT_THIS_MACHINE)
    assert [policy_set_.number for policy_set_ in fleet.policy_sets(view)] == [2]
    now, history, bucket_us = fleet.engines(view)
    assert [row.engine for row in now] == ["pool:llama-70b/0"]
    assert {row.at_us // bucket_us for row in history} == {
        (filled.now_us - n * 10 * 10**6) // bucket_us for n in range(1, 721)
    }
    finished = [
        opened.opened_us
        for opened, settled in filled.pairs
        if opened.backend == "own"
        and settled.status == "finished"
        and filled.now_us - DAY_US <= opened.opened_us < filled.now_us
    ]
    assert [item.opened_us for item in fleet.streamed(view, 7)] == sorted(finished)[-7:]
    assert fleet.round_trips(view) == {}


def test_without_a_run_directory_nothing_is_said_of_this_host() -> None:
    assert (fleet.upkeep(), fleet.drift()) == ({}, {})
