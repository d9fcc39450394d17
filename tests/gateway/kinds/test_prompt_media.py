"""A picture's likely tokens, where no target is looked at."""

import pytest

from gateway.kinds.prompt_media import PictureSize, likely_tokens


@pytest.mark.parametrize(
    ("sides", "stated", "tokens"),
    [([], 5_000, 0), ([(750, 10)], 5_000, 95), ([(9_000, 9_000), (1, 1)], 5_000, 1_685),
     ([(9_000, 9_000)], 50, 50)],
)  # fmt: skip
def test_a_picture_counts_by_its_area_up_to_the_most(sides, stated, tokens) -> None:
    assert likely_tokens(tuple(PictureSize(*size) for size in sides), stated) == tokens
