"""Parts of a limit never add up to more than it; a host that is gone loses its own, not at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.budgets.rate_shares import (
    KEPT_S,
    LEASE_S,
    TAKEN_OVER_S,
    LeaseLapsed,
    RateShare,
    RateShareNeed,
    RateShares,
    grown,
)

US = 1_000_000
LIMITS = (600, None)
amounts = st.integers(0, 1000)


@given(st.integers(1, 1000), amounts, amounts, amounts, st.integers(1, 9))
def test_a_part_grows_into_what_is_free_and_no_further(limit, mine, others, target, hosts) -> None:
    after = grown(limit, mine, others, target, hosts)
    assert after >= 0
    assert after <= max(0, limit - others)
    if target <= limit - others:
        assert after >= target, "what fits is given whole"
    if mine <= limit - others:
        assert after >= mine


@pytest.mark.parametrize(
    ("mine", "others", "target", "hosts", "after"),
    [
        (0, 0, 1, 1, 600),  # alone: all of it, and nobody is asked again
        (0, 0, 1, 3, 200),  # an even part, so that the others find theirs
        (200, 200, 201, 3, 300),  # beyond it half of what is left
        (200, 200, 390, 3, 390),
        (0, 590, 50, 2, 10),  # not enough: what there is
        (600, 300, 601, 2, 300),  # a limit that was lowered
    ],
)
def test_how_much_is_had_at_once(mine, others, target, hosts, after) -> None:
    assert grown(600, mine, others, target, hosts) == after


class Time:
    """The database's clock, moved by hand."""

    def __init__(self) -> None:
        self.now_us = 10**15

    def __call__(self, _) -> int:
        return self.now_us

    def passes(self, seconds: float) -> None:
        self.now_us += int(seconds * US)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def hosts(engine, time):
    made = {name: RateShares(engine, name, f"host {name}", time) for name in "abc"}
    for made_value in made.values():
        assert made_value.renew()[1], "nothing was known of it"
    return made


def need(target: int, limits=LIMITS) -> list[RateShareNeed]:
    return [RateShareNeed("key:k", limits, (target, 0))]


def grow(host: RateShares, target: int) -> int:
    return host.grow(need(target))[1]["key:k"].held[0]


def test_hosts_have_no_more_than_the_limit_and_what_is_wanted_moves(hosts) -> None:
    a, b, c = hosts.values()
    assert [grow(item, 1) for item in (a, b, c)] == [200, 200, 200]
    assert grow(a, 250) == 200, "there is no more"
    assert a.wanted_by_others() == {}
    assert b.wanted_by_others() == {"key:k": (50, 0)}
    b.release_shares({"key:k": RateShare(LIMITS, (120, 0), (120, 0))})
    assert b.wanted_by_others() == {}
    assert grow(a, 250) == 250
    assert sum(item.own_shares()["key:k"].held[0] for item in (a, b, c)) <= 600
    assert a.own_shares()["key:k"].limits == LIMITS


def test_a_host_that_is_gone_loses_its_part_when_all_it_let_in_is_forgotten(hosts, time) -> None:
    a, b, c = hosts.values()
    grow(a, 600)
    time.passes(TAKEN_OVER_S - 1)
    for item in (b, c):
        item.renew()
    b.take_over()
    assert grow(b, 1) == 0, "a minute of it may still count"
    time.passes(2)
    for item in (b, c):
        item.renew()
    assert b.take_over() == 1
    assert grow(b, 400) == 400, "all but what it keeps: its even part"
    assert grow(b, 600) == 400
    with pytest.raises(LeaseLapsed):
        grow(a, 600)
    assert a.renew() == (3, True)
    assert a.own_shares()["key:k"] == RateShare(LIMITS, (200, 0), (200, 0))
    time.passes(KEPT_S + TAKEN_OVER_S + 1)
    b.renew()
    assert b.take_over() == 2
    assert grow(b, 600) == 600


def test_who_leaves_keeps_nothing(hosts, time) -> None:
    a, b, _ = hosts.values()
    grow(a, 600)
    a.release_all()
    time.passes(TAKEN_OVER_S + 1)
    b.renew()
    b.take_over()
    assert grow(b, 600) == 600


def test_a_lease_is_renewed_before_it_ends_and_lapses_after(hosts, time) -> None:
    a = hosts["a"]
    time.passes(LEASE_S - 1)
    assert a.renew() == (3, False)
    time.passes(LEASE_S + 1)
    with pytest.raises(LeaseLapsed):
        a.write_shares({})
    assert a.renew() == (1, True)
