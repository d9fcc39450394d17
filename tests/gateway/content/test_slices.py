"""Texts in slices."""

from gateway.content.slices import OVERLAP, SLICE, slices_of


def test_every_character_is_in_a_slice_and_none_is_large() -> None:
    texts = ["a" * 10, "b" * (3 * SLICE), "c" * 100, "d" * (SLICE - 50), "e" * 200]
    seen = [bytearray(len(text)) for text in texts]
    for group in slices_of(texts):
        assert sum(len(piece.piece) for piece in group) <= SLICE
        for text, start, piece in group:
            assert texts[text][start : start + len(piece)] == piece
            seen[text][start : start + len(piece)] = b"\1" * len(piece)
    assert all(all(marks) for marks in seen)


def test_pieces_of_one_text_overlap() -> None:
    first, second = [group[0] for group in slices_of(["x" * (SLICE + 10)])]
    assert first.start + len(first.piece) - second.start == OVERLAP
