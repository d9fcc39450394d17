"""Lists that repeat, forget and mix: each engine is of one row, or a stranger with one key."""

from dataclasses import replace

from gateway.scaling.actuator import ListedInstance
from gateway.scaling.listed_matches import ListedMatches, stranger_keys
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance

ROW = FleetInstance("p.0.t", "p", 0, True, InstanceRent(10**12), 1, name="i-0")
GONE = replace(ROW, token="p.1.t", place=1, name="i-1", gone_us=9)


def matched(*listed: ListedInstance, closed=()) -> tuple[dict, list, int]:
    found = ListedMatches("p", [ROW], listed, closed)
    names = {token: [item.name for item in items] for token, items in found.of.items()}
    return names, sorted(found.strange), len(found.returned)


def test_an_engine_that_is_listed_twice_is_one() -> None:
    once = ListedInstance("i-0", "p.0.t", 0)
    assert matched(once, once) == ({"p.0.t": ["i-0"]}, [], 0)


def test_the_engine_that_the_row_names_is_its_own_in_any_order() -> None:
    both = (ListedInstance("i-9", "p.0.t", 0), ListedInstance("i-0", "p.0.t", 0))
    for listed in (both, both[::-1]):
        assert matched(*listed) == ({"p.0.t": ["i-0", "i-9"]}, ["p.0.t#i-9"], 0)


def test_a_forgotten_tag_leaves_place_and_name() -> None:
    assert matched(ListedInstance("i-0"))[0] == {"p.0.t": ["i-0"]}
    assert matched(ListedInstance("i-7", None, 0))[0] == {"p.0.t": ["i-7"]}
    assert matched(ListedInstance("i-7"))[1] == ["p!i-7"]
    assert matched(ListedInstance("i-0", "odd"))[1] == ["odd"], "another token is another engine"


def test_ended_rows_return_and_those_of_other_pools_stay_there() -> None:
    again = ListedInstance("i-1", "p.1.t", 1)
    assert matched(again, closed=[GONE]) == ({}, [], 1)
    found = ListedMatches("p", [ROW], [again], [replace(GONE, pool="q")])
    assert [pool for _, pool in found.foreign] == ["q"]
    assert (found.strange, found.returned) == ({}, [])


def test_a_stranger_that_had_a_row_is_a_stranger_again() -> None:
    closed = [replace(GONE, owned=False)]
    assert matched(ListedInstance("i-1", "p.1.t"), closed=closed)[1] == ["p.1.t"]
    assert "p.1.t" in stranger_keys("p.1.t~1790000000000000") & stranger_keys("p.1.t")
    assert stranger_keys("a~b") == {"a~b"}
