"""What bills have is shared so that nothing is left that a claim may explain."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.supply_shares import share_supplies

DAYS = range(5)


def reach(day):
    return [(day, ""), (day + 1, ""), (day - 1, "")]


def test_a_group_gives_way_where_it_can_draw_elsewhere():
    """Claims of two days, each billed a day later: the second day's bill is the first's."""
    demands = {(5, ""): 60, (6, ""): 60}
    pools = {group: reach(group[0]) for group in demands}
    assert share_supplies(demands, {(6, ""): 60, (7, ""): 60}, pools) == demands
    assert share_supplies(demands, {(6, ""): 60}, pools) == {(5, ""): 0, (6, ""): 60}


@given(
    demands=st.lists(st.integers(0, 20), min_size=5, max_size=5),
    supplies=st.lists(st.integers(0, 20), min_size=5, max_size=5),
)
def test_as_much_is_given_as_any_way_of_sharing_gives(demands, supplies):
    """Property: the cut of every run of days bounds it, and one of these bounds is reached."""
    wanted = {(day, ""): demands[day] for day in DAYS}
    had = {(day, ""): supplies[day] for day in DAYS}
    given_ = share_supplies(wanted, had, {group: reach(group[0]) for group in wanted})
    assert all(0 <= given_[group] <= wanted[group] for group in wanted)
    # Earliest deadline first is best for stretches of one length.
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
