"""The search against response surfaces that are known: what it finds, at how many trials."""

import itertools
import math
import random

import pytest

from backends.engine.tune import (
    BaselineFailed,
    FlagDimension,
    FlagValue,
    LoadPoint,
    LoadSearch,
    TrialRequest,
    TuneEffort,
    defaults,
    describe_arm,
    flags_of,
    is_exact,
    search,
    search_each,
    search_upwards,
)

SPACE = (
    FlagDimension(
        "weights", (FlagValue("default"), FlagValue("fp8", ("--quantization", "fp8"), False))
    ),
    FlagDimension(
        "budget",
        tuple(
            FlagValue(name, (f"--b={name}",) if name != "default" else ())
            for name in ("default", "1024", "2048", "4096", "8192")
        ),
    ),
    FlagDimension(
        "sequences", tuple(FlagValue(name) for name in ("default", "128", "512", "s1024"))
    ),
    FlagDimension("kernel", tuple(FlagValue(name) for name in ("default", "a", "b", "c", "d"))),
    FlagDimension("async", (FlagValue("default"), FlagValue("off"))),
)
GAINS = {
    "fp8": 1.3, "1024": 0.9, "2048": 1.1, "4096": 1.05, "8192": 0.8, "128": 0.7, "512": 1.08,
    "a": 0.6, "b": 0.97, "c": 1.04, "off": 0.95,
}  # fmt: skip


def smooth(arm) -> float | None:
    """Factors, one pair of which matters together; one kernel does not start."""
    if "d" in arm:
        return None
    value = 1000.0 * math.prod(GAINS.get(name, 1.0) for name in arm)
    if arm[2] == "s1024":  # worth it with a small budget alone
        value *= 1.15 if arm[1] == "2048" else 0.98
    return value


def ran(surface, space=SPACE, effort=None) -> tuple[tuple, list[TrialRequest]]:
    """The arm that came out, and everything that was asked."""
    asked: list[TrialRequest] = []
    looking = search(space, effort or TuneEffort())
    try:
        ask = next(looking)
        while True:
            asked.append(ask)
            ask = looking.send(surface(ask.arm))
    except StopIteration as end:
        return end.value, asked


def test_it_finds_the_best_arm_at_a_fraction_of_the_trials():
    best, asked = ran(smooth)
    arms = list(itertools.product(*(tuple(c.name for c in item.choices) for item in SPACE)))
    most = max(smooth(arm) or 0.0 for arm in arms)
    assert smooth(best) == pytest.approx(most), best
    assert best == ("fp8", "2048", "s1024", "c", "default")
    assert len(asked) < 0.25 * len(arms), f"{len(asked)} of {len(arms)}"
    assert len({ask.key for ask in asked}) == len(asked), "nothing is asked twice"


def test_bad_arms_get_no_second_look_and_are_judged_by_the_best_so_far():
    _, asked = ran(smooth)
    long = {ask.arm[3] for ask in asked if ask.level == 1}
    assert {"a", "d"} & long == set(), "40 % slower, and one that does not start"
    assert all(ask.rival is not None for ask in asked if ask.arm != defaults(SPACE))
    assert asked[0] == TrialRequest(defaults(SPACE), 0)


def noise(seed: int):
    rng = random.Random(seed)
    return lambda _: 1000 * rng.gauss(1, 0.004)


def test_noise_changes_no_flag():
    """All arms alike, one percent apart by chance: the defaults stay, whatever the seed."""
    for seed in range(20):
        best, _ = ran(noise(seed))
        assert best == defaults(SPACE), seed


def test_the_margin_is_what_keeps_noise_out():
    """The control of the test above: without it chance decides."""
    found = set()
    for seed in range(20):
        found.add(ran(noise(seed), effort=TuneEffort(margin=0.0))[0])
    assert len(found) > 5


def test_scores_of_times_are_negative_and_less_is_better():
    best, _ = ran(lambda arm: None if smooth(arm) is None else -1.0 / smooth(arm))
    assert best == ("fp8", "2048", "s1024", "c", "default")


def test_a_log_replays_to_the_same_question():
    whole, asked = ran(smooth)
    for cut in (1, 5, len(asked) - 1):
        looking = search(SPACE, TuneEffort())
        ask = next(looking)
        for before in asked[:cut]:
            assert ask == before
            ask = looking.send(smooth(before.arm))
        assert ask == asked[cut]
    assert whole == ran(smooth)[0]


def test_three_levels_halve_twice():
    _, asked = ran(smooth, effort=TuneEffort(levels=3, rounds=1))
    kernels = [{ask.arm[3] for ask in asked if ask.level == level} for level in range(3)]
    assert len(kernels[0]) == 5
    assert len(kernels[2]) <= len(kernels[1]) < len(kernels[0])


def test_where_defaults_do_not_serve_nothing_can_be_compared():
    with pytest.raises(BaselineFailed):
        ran(lambda arm: None if arm == defaults(SPACE) else 1.0)


def test_an_arm_as_flags_and_as_words():
    arm = ("fp8", "2048", "default", "c", "default")
    assert flags_of(SPACE, arm) == ("--quantization", "fp8", "--b=2048")
    assert describe_arm(SPACE, arm) == {"weights": "fp8", "budget": "2048", "kernel": "c"}
    assert not is_exact(SPACE, arm)
    assert is_exact(SPACE, defaults(SPACE))


# ---------------------------------------------------------------- loads of one server


def climbed(engine, first, rival=(), before=()) -> LoadSearch:
    steps = search_upwards(first, rival, before=before)
    try:
        load = next(steps)
        while True:
            load = steps.send(engine(load))
    except StopIteration as end:
        return end.value


def saturating(most: float, bad_from: int):
    """Throughput that bends at `most`; steps get too long at a load."""
    return lambda load: LoadPoint(load, most * load / (load + 40), load < bad_from)


@pytest.mark.parametrize("first", [8, 64, 200, 700])
def test_the_most_within_the_promise_is_found_from_any_start(first):
    ascent = climbed(saturating(10_000, 300), first)
    assert ascent.best is not None
    reached = ascent.best.tokens_s / saturating(10_000, 300)(299).tokens_s
    assert reached > 0.95, ascent
    assert not ascent.stopped


def test_a_longer_look_does_not_climb_where_a_shorter_one_came_back():
    engine = saturating(10_000, 300)
    short = climbed(engine, 64)
    best = short.best.load
    assert max(event.load for event in short.seen) > best
    assert [event.load for event in climbed(engine, best, before=short.seen).seen] == [best]
    assert len(climbed(engine, best).seen) > 1, "the control: without what was seen it climbs"
    worse = climbed(saturating(10_000, best), best, before=short.seen)
    assert worse.best.load < best, "down, where the longer look finds the promise broken"


def test_a_throughput_that_no_longer_grows_ends_the_climb():
    ascent = climbed(lambda load: LoadPoint(load, min(load, 100) * 10.0, good=True), 50)
    assert ascent.best.tokens_s == 1000
    assert len(ascent.seen) <= 4


def test_a_hopeless_arm_is_over_after_its_first_load():
    rival = [LoadPoint(64, 1000.0, good=True)]
    slow = climbed(lambda load: LoadPoint(load, 800.0, good=True), 64, rival)
    assert slow.stopped
    assert len(slow.seen) == 1
    near = climbed(lambda load: LoadPoint(load, 900.0, good=True), 64, rival)
    assert not near.stopped


def test_a_promise_that_nothing_keeps_has_no_best():
    ascent = climbed(lambda load: LoadPoint(load, 10.0, good=False), 8)
    assert ascent.best is None
    assert [event.load for event in ascent.seen][-1] == 1


@pytest.mark.parametrize(
    ("most", "asked", "best"),
    [(64, [6, 40], 40), (20, [6, 40], 6), (3, [6, 40, 4, 2], 2), (0, [6, 40, 4, 2, 1], None)],
)
def test_loads_are_asked_one_by_one_and_lower_ones_where_none_is_kept(most, asked, best):
    steps, loads = search_each([6, 40]), []
    load = next(steps)
    try:
        while True:
            loads.append(load)
            load = steps.send(LoadPoint(load, 10.0 * load, load <= most))
    except StopIteration as end:
        found = end.value
    assert loads == asked
    assert (found.best and found.best.load) == best
