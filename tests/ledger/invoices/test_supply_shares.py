"""What bills have is shared so that nothing is left that a demand of a stage may explain."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.supply_shares import SupplyShares

DAYS = range(5)


def pool(day):
    return day, day, ""


def tiers(groups):
    return {group: [[pool(group[1] + ahead)] for ahead in (0, 1, -1)] for group in groups}


def always(_group, _pool):
    return True


def never(_group, _pool):
    return False


def test_a_demand_gives_way_where_it_can_draw_elsewhere():
    """Claims of two days, each billed a day later: the second day's bill is the first's."""
    demands = {(0, 5, ""): 60, (0, 6, ""): 60}
    shares = SupplyShares({pool(6): 60, pool(7): 60})
    assert shares.share(demands, tiers(demands), always) == demands
    shares = SupplyShares({pool(6): 60})
    assert shares.share(demands, tiers(demands), always) == {(0, 5, ""): 0, (0, 6, ""): 60}


def test_a_later_stage_takes_nothing_and_moves_only_what_may_be_moved():
    first, second = {(0, 6, ""): 60}, {(1, 5, ""): 60}
    for may_move, got in ((always, 60), (never, 0)):
        shares = SupplyShares({pool(6): 60, pool(7): 60})
        assert shares.share(first, tiers(first), always) == first
        assert shares.share(second, tiers(second), may_move) == {(1, 5, ""): got}
    shares = SupplyShares({pool(6): 60})
    shares.share(first, tiers(first), always)
    assert shares.share(second, tiers(second), always) == {(1, 5, ""): 0}


def test_no_demand_draws_on_a_tier_before_all_had_theirs_before_it():
    demands = {(0, 5, ""): 60, (0, 6, ""): 60}
    shares = SupplyShares({pool(6): 60})
    given_ = shares.share(demands, tiers(demands), never)
    assert given_ == {(0, 5, ""): 0, (0, 6, ""): 60}


@given(
    demands=st.lists(st.integers(0, 20), min_size=5, max_size=5),
    supplies=st.lists(st.integers(0, 20), min_size=5, max_size=5),
)
def test_as_much_is_given_as_any_way_of_sharing_gives(demands, supplies):
    """Property: earliest deadline first is best for stretches of one length, and is reached."""
    wanted = {(0, day, ""): demands[day] for day in DAYS}
    shares = SupplyShares({pool(day): supplies[day] for day in DAYS})
    given_ = shares.share(wanted, tiers(wanted), always)
    assert all(0 <= given_[group] <= wanted[group] for group in wanted)
    left, best = list(demands), 0
    for day in DAYS:
        spare = supplies[day]
        for of in (day - 1, day, day + 1):
            if of in DAYS:
                taken = min(spare, left[of])
                left[of] -= taken
                spare -= taken
                best += taken
    assert sum(given_.values()) == best
