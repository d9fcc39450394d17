"""The parts of a prompt's prefix in an engine's own blocks."""

from gateway.whatif.traffic import Arrival


def test_a_prefix_is_told_in_an_engines_own_blocks() -> None:
    arrival = Arrival(0.0, 2000, 1, "m", prefix=(3, 7))
    assert arrival.blocks(256) == (6, 7, 14, 15)
    assert arrival.blocks(512) == (3, 7)
