"""Texts in slices."""

import pytest

from gateway.content.slices import FIRST, LEAST, OVERLAP, SLICE, SlicePace, slices_of


@pytest.mark.parametrize("took_s", [0.0, 5e-4, 1.0])
def test_every_character_is_in_a_slice_and_none_is_large(took_s) -> None:
    texts = ["a" * 10, "b" * (3 * SLICE), "c" * 100, "d" * (SLICE - 50), "e" * 200, ""]
    seen = [bytearray(len(text)) for text in texts]
    pace = SlicePace()
    for group in slices_of(texts, pace):
        assert sum(len(piece.piece) for piece in group) <= SLICE
        for text, start, piece, *_ in group:
            assert texts[text][start : start + len(piece)] == piece
            seen[text][start : start + len(piece)] = b"\1" * len(piece)
        pace.record(took_s)
    assert all(all(marks) for marks in seen)


def test_pieces_of_one_text_overlap() -> None:
    first, second = [group[0] for group in slices_of(["x" * (FIRST + 10)], SlicePace())]
    assert first.start + len(first.piece) - second.start == OVERLAP


def test_what_takes_long_is_cut_smaller_within_bounds() -> None:
    pace = SlicePace()
    for _ in range(20):
        pace.record(0.0)
    assert pace.characters == SLICE
    for _ in range(20):
        pace.record(1.0)
    assert pace.characters == LEAST
