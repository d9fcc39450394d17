"""What a team saw is held for by it, by others as far as a second team saw it."""

import struct
from array import array

from hypothesis import given
from hypothesis import strategies as st

from router.team_peaks import TeamPeak

PEAK = TeamPeak(0, 1, 2, limit=50.0, least=1.0)
figures = st.floats(-1.0, 100.0)


def cells(raw: bytes = bytes(24)) -> "memoryview[float]":
    return memoryview(array("d", struct.unpack("3d", raw)))


@given(st.lists(st.tuples(st.sampled_from("abc"), figures), max_size=12), st.floats(0.0, 1.0))
def test_it_is_the_most_of_the_team_and_of_two(told, left) -> None:
    """Honest teams are covered by what they saw themselves; one that lies moves nobody else."""
    row = cells()
    for team, seen in told:
        PEAK.note(row, team, seen)
    own = {
        team: max([0.0, *(min(seen, 50.0) for by, seen in told if by == team)]) for team in "abc"
    }
    of_two = sorted(own.values())[1]
    for team in "abcd":
        assert PEAK.seen(row, team) == max(of_two, own.get(team, 0.0))
    assert PEAK.most(list(row)) == max(own.values())
    faded = list(row)
    PEAK.fade(faded, left)
    most = max(own.values()) * left
    assert PEAK.most(faded) == (most if most >= 1.0 else 0.0)


@given(st.binary(min_size=24, max_size=24), st.sampled_from("ab"), figures, st.floats(0.0, 1.0))
def test_whatever_the_cells_hold_it_is_within_the_limit(raw, team, seen, left) -> None:
    row = cells(raw)
    assert 0.0 <= PEAK.seen(row, team) <= 50.0
    PEAK.note(row, team, seen)
    assert PEAK.seen(row, team) >= min(seen, 50.0)
    assert 0.0 <= PEAK.most(list(row)) <= 50.0
    faded = list(row)
    PEAK.fade(faded, left)
    assert 0.0 <= PEAK.most(faded) <= 50.0
