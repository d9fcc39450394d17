"""A picture's likely tokens, where no target is looked at."""

import pytest

from gateway.kinds.prompt_media import PictureSize, likely_tokens


@pytest.mark.parametrize(
    ("sides", "unread", "stated", "tokens"),
    [([], 0, 5_000, 0), ([(750, 10)], 0, 5_000, 95), ([(9_000, 9_000), (1, 1)], 0, 5_000, 1_685),
     ([(9_000, 9_000)], 0, 50, 50), ([], 2, 5_000, 3_200), ([(1, 1)], 1, 50, 100)],
)  # fmt: skip
def test_a_picture_counts_by_its_area_up_to_the_most(sides, unread, stated, tokens) -> None:
    assert likely_tokens(tuple(PictureSize(*size) for size in sides), unread, stated) == tokens


def test_of_several_pictures_in_a_file_the_largest_is_likely() -> None:
    assert likely_tokens((PictureSize(1, 1, "", ((750, 10),)),), 0, 5_000) == 95
