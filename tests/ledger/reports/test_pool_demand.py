"""Windows of a pool: a minute's kept tokens have its hour's mix, and nothing is lost."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.value_curve import TrafficClass
from ledger.reports.pool_demand import (
    ClassKey,
    KeptCell,
    PoolMix,
    PoolSize,
    PoolTraffic,
    build_curve,
    class_keys,
    split_by_residency,
)
from ledger.spans import HOUR_US

A, B = ClassKey("a", False), ClassKey("b", False)


def curve_of(kept: list[int], bought: list[int], mix: PoolMix, *, window: int = 1):
    traffic = PoolTraffic(0, kept, {"b": bought})
    keys = class_keys(mix, traffic)
    classes = [
        (key, TrafficClass(key.model, 1, True, work))
        for key, work in zip(keys, mix.work(keys), strict=True)
    ]
    size = PoolSize(1, Fraction(10), window)
    return build_curve(traffic, mix, classes, size=size, bought_pusd={"b": 7})


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 50), min_size=120, max_size=120),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2),
    st.sampled_from([1, 7, 60]),
)
def test_every_token_is_in_a_window_once(kept, shares, window) -> None:
    bought = [count % 3 for count in kept]
    mix = PoolMix(
        {
            key: {hour * HOUR_US: row[place] + 1 for hour, row in enumerate(shares)}
            for place, key in enumerate((A, B))
        },
        {A: 5, B: 5},
    )
    curve = curve_of(kept, bought, mix, window=window)
    assert sum(sum(w.kept) * w.times for w in curve.windows) == sum(kept)
    assert sum(sum(w.bought) * w.times for w in curve.windows) == sum(bought)
    assert curve.bought_pusd == (0, 7)


@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=60, max_size=120))
def test_a_class_keeps_its_tokens_of_each_hour(minutes) -> None:
    """What a minute's rounding takes from a class its hour gives back: prices differ by class."""
    classes = A, B, ClassKey("c", False)
    hours = {
        key: {
            hour * HOUR_US: sum(row[place] for row in minutes[60 * hour : 60 * hour + 60])
            for hour in range(2)
        }
        for place, key in enumerate(classes)
    }
    curve = curve_of([sum(row) for row in minutes], [], PoolMix(hours, {}))
    kept = [
        sum(window.kept[place] * window.times for window in curve.windows)
        for place in range(len(curve.classes))
    ]
    by_name = {key.model: sum(tokens.values()) for key, tokens in hours.items()}
    named = {item.name: by_name[item.name] for item in curve.classes}
    assert kept == list(named.values())


def test_a_minute_has_the_mix_of_its_hour() -> None:
    mix = PoolMix({A: {0: 3, HOUR_US: 0}, B: {0: 1, HOUR_US: 5}}, {A: 1, B: 1})
    curve = curve_of([40] + [0] * 59 + [40] + [0] * 59, [0] * 120, mix)
    assert {window.kept for window in curve.windows} == {(30, 10), (0, 40)}


def test_engine_time_makes_work_and_the_capacity_follows_the_mix() -> None:
    """`a` takes three times the engine of `b` for a token; both have as many tokens."""
    mix = PoolMix({A: {0: 100}, B: {0: 100}}, {A: 300, B: 100})
    assert mix.work([A, B]) == [150, 50]
    assert mix.work([ClassKey("c", False)]) == [100], "a class that was never kept has the mean"
    curve = curve_of([200], [0], mix)
    assert curve.capacity == 10 * 100


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("st"), st.sampled_from("mn"), st.integers(0, 9)), max_size=6
    ),
    st.integers(0, 30),
)
def test_what_stays_by_key_is_split_without_a_token_lost_or_counted_twice(rows, inside) -> None:
    cells = [KeptCell(0, team, "p", "chat", model, n, 7 * n) for team, model, n in rows]
    found = list(split_by_residency(cells, {"t"}, {(0, "s"): inside}))
    assert sum(tokens for _, _, tokens, _ in found) == sum(cell.tokens for cell in cells)
    assert sum(us for *_, us in found) == sum(cell.engine_us for cell in cells)
    whole = {team: sum(n for name, _, n in rows if name == team) for team in "st"}
    bound = sum(tokens for of, _, tokens, _ in found if of.key.is_bound)
    assert bound == whole["t"] + min(whole["s"], inside)
