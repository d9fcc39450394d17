"""An engine's pace against its own first hours: what is compared, and what is left alone."""

import random

import pytest

from backends.engine.decay import DecayReading, pace

STEP_S = 10.0


def series(
    seconds: float, *, slower: float = 1.0, seed: int = 1, most: int = 24, from_s: float = 0.0
) -> list[DecayReading]:
    """A day of users: load wanders, tokens follow it less than in proportion, with noise."""
    rng, found, read, written = random.Random(seed), [], 0, 0
    running, at_s = 8.0, 0.0
    while at_s < seconds:
        running = min(most, max(1.0, running + rng.gauss(0.0, 1.5)))
        rate = 2400 * running / (running + 20) / slower * rng.lognormvariate(0.0, 0.05)
        found.append(DecayReading(from_s + at_s, round(running), read, written))
        written += round(rate * STEP_S)
        read += round(running * 40 * rng.uniform(0.8, 1.2) * STEP_S)
        at_s += STEP_S
    return found


FIRST = series(6 * 3600)


@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize(("slower", "lost"), [(1.0, False), (1.08, False), (1.25, True)])
def test_a_loss_is_found_and_noise_is_none(seed, slower, lost):
    found = pace(FIRST, series(2 * 3600, slower=slower, seed=seed), 0.15)
    assert found is not None
    assert found.ratio == pytest.approx(1 / slower, rel=0.04)
    assert found.is_lost(0.15) is lost


def test_less_load_is_no_loss():
    """The control: its throughput has halved, but so has what was asked of it."""
    quiet = series(2 * 3600, seed=3, most=6)
    whole = [item[-1].output_tokens / (item[-1].at_s - item[0].at_s) for item in (FIRST, quiet)]
    assert whole[1] < 0.6 * whole[0]
    found = pace(FIRST, quiet, 0.15)
    assert found is not None
    assert not found.is_lost(0.15)


def test_loads_that_were_not_seen_at_first_say_nothing():
    assert pace(series(6 * 3600, most=4), _always(20, 720), 0.15) is None
    assert pace(FIRST, [], 0.15) is None
    assert pace([], FIRST, 0.15) is None


def test_so_little_is_no_evidence():
    assert pace(_always(8, 3600), _always(8, 30, slower=2.0), 0.15) is None
    found = pace(_always(8, 3600), _always(8, 90, slower=2.0), 0.15)
    assert found is not None
    assert found.is_lost(0.15)


def test_one_load_alone_that_is_slow_is_no_loss():
    """Most moments are as they were: one kind of request has become dearer, not the engine."""
    first = [*_always(4, 200), *_always(16, 200, from_s=1e6)]
    now = [*_always(4, 130), *_always(16, 70, slower=2.5, from_s=1e6)]
    found = pace(first, now, 0.15)
    assert found is not None
    assert found.ratio < 0.85
    assert not found.is_lost(0.15)


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda at, n: DecayReading(100.0 * n, at.running, at.prompt_tokens, at.output_tokens),
        lambda item, n: DecayReading(item.at_s, 0, item.prompt_tokens, item.output_tokens),
        lambda item, n: DecayReading(item.at_s, item.running, item.prompt_tokens, 0),
        lambda item, n: DecayReading(item.at_s, item.running, -n, item.output_tokens),
        lambda item, n: DecayReading(0.0, item.running, item.prompt_tokens, item.output_tokens),
    ],
)  # fmt: skip
def test_gaps_idle_moments_and_other_lives_are_left_out(spoiled):
    now = _always(8, 200)
    assert pace(_always(8, 200), now, 0.15) is not None
    assert pace(_always(8, 200), [spoiled(item, n) for n, item in enumerate(now)], 0.15) is None


def _always(
    running: int, moments: int, *, slower: float = 1.0, from_s: float = 0.0
) -> list[DecayReading]:
    rate = 100 * running / slower
    return [
        DecayReading(from_s + STEP_S * n, running, 400 * running * n, round(rate * STEP_S * n))
        for n in range(moments + 1)
    ]
