"""A clairvoyant's plan is played by the same engines, and only what keeps promises counts."""

from cells import cells
from feasible import PlannedFleet, Search
from traces import Traces
from trial import run, usd

CELL = next(cell for cell in cells(250) if cell.name == "conv_mini_2x")


def test_a_plan_avoids_no_more_than_its_bill_and_the_search_only_gains():
    arrivals = Traces().arrivals(CELL.load, 0)
    everybody = dict.fromkeys(range(len(arrivals)), 0.0)
    begun = Search(CELL, arrivals, 0, dict(everybody)).run(0)
    found = Search(CELL, arrivals, 0, dict(everybody)).run(6)
    assert 0.0 < begun <= found <= sum(usd(CELL, arrival) for arrival in arrivals)


def test_who_is_in_no_plan_goes_to_the_api():
    arrivals = Traces().arrivals(CELL.load, 0)
    search = Search(CELL, arrivals, 0, {0: 0.0, 3: 0.2})
    outcomes = search._played(search.plan)
    assert [index for index, item in enumerate(outcomes) if item.engine is not None] == [0, 3]
    assert abs(outcomes[3].waited_s - 0.2) < 1e-9


def test_a_plan_for_all_is_what_all_own_does():
    arrivals = Traces().arrivals(CELL.load, 0)
    search = Search(CELL, arrivals, 0, dict.fromkeys(range(len(arrivals)), 0.0))
    worth = search._worth(search._played(search.plan), 0.0, float("inf"))
    assert abs(worth - run(CELL, arrivals, "all-own", 0).avoided_usd) < 1e-9
    assert PlannedFleet({}).choose(arrivals[0], [], 0.0, 0).seat is None
