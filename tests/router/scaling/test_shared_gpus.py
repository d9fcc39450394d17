"""Pools on one set of GPUs: the best choice, and no swap that does not pay."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.scaling.shared_gpus import PoolBid, share_gpus


@st.composite
def bids(draw) -> list[PoolBid]:
    return [
        PoolBid(
            f"pool {place}", 1, draw(st.integers(0, 3)), 0,
            tuple(sorted(draw(st.lists(st.integers(-9, 40), max_size=4)), reverse=True)),
            draw(st.integers(0, 20)),
        )
        for place in range(draw(st.integers(1, 3)))
    ]  # fmt: skip


def earned(row: list[PoolBid], counts: tuple[int, ...], hours: float) -> float:
    swaps = (
        max(0, count - bid.resident) * bid.swap_pusd for bid, count in zip(row, counts, strict=True)
    )
    return sum(
        sum(bid.values[:count]) for bid, count in zip(row, counts, strict=True)
    ) - sum(swaps) / hours  # fmt: skip


@given(bids(), st.integers(0, 7), st.sampled_from([0.5, 1.0, 4.0]))
def test_no_other_choice_earns_more(row, gpus, hours) -> None:
    chosen = tuple(share.engines for share in share_gpus(row, gpus, hours))
    choices = [
        counts
        for counts in product(*(range(len(bid.values) + 1) for bid in row))
        if sum(counts) <= gpus
    ]
    assert sum(chosen) <= gpus
    best = max(earned(row, counts, hours) for counts in choices)
    assert earned(row, chosen, hours) == pytest.approx(best)


def test_a_resident_model_stays_until_another_earns_the_swap() -> None:
    chat = PoolBid("chat", 2, 1, 0, (10,))
    for value, holder in ((14, "chat"), (16, "code")):
        code = PoolBid("code", 2, 0, 0, (value,), swap_pusd=10)
        shares = {share.pool: share.engines for share in share_gpus([chat, code], 2, 2.0)}
        assert shares[holder] == 1
        assert sum(shares.values()) == 1


def test_needs_come_first_and_what_lacks_is_said() -> None:
    inner = PoolBid("inner", 2, 0, 3, (-5, -5, -5), swap_pusd=100)
    chat = PoolBid("chat", 1, 4, 0, (50, 50, 50, 50))
    assert [(share.engines, share.short) for share in share_gpus([chat, inner], 5, 1.0)] == [
        (1, 0), (2, 1),
    ]  # fmt: skip


def test_a_horizon_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="kept_hours"):
        share_gpus([], 4, 0.0)
