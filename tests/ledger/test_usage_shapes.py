"""What stands where in usage is remembered by its shape; large and odd ones are not."""

import pytest

from ledger.usage_members import UsageCount
from ledger.usage_shapes import (
    LONGEST_NAME,
    MOST_NAMES,
    counts_by_shape,
    unknown_places,
    usage_shape,
)

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "holograms": 3}
DETAILS = {"prompt_tokens_details": {"cached_tokens": 4, "holo_tokens": 5}}


def test_a_shape_names_what_counts_and_what_is_not_known() -> None:
    usage = USAGE | DETAILS
    shape = usage_shape(usage)
    assert shape is not None
    assert list(counts_by_shape(usage, shape)) == [
        (UsageCount.PROMPT, "prompt_tokens", 7),
        (UsageCount.COMPLETION, "completion_tokens", 2),
        (UsageCount.CACHED, "cached_tokens", 4),
    ]
    places = ((None, "holograms"), ("prompt_tokens_details", "holo_tokens"))
    assert unknown_places(shape) == places
    assert usage_shape({**usage, "holograms": 9}) == shape, "values are not part of it"


@pytest.mark.parametrize(
    "odd",
    [
        {"rounds": []},
        {"prompt_tokens_details": 3},
        {"deep": {"er": {"still": 1}}},
        {f"n{number}": 1 for number in range(MOST_NAMES)},
        {"inner": {f"n{number}": 1 for number in range(MOST_NAMES)}},
        {"n" * (LONGEST_NAME + 1): 1},
        {"inner": {"n" * (LONGEST_NAME + 1): 1}},
    ],
)
def test_what_is_odd_or_large_has_no_shape(odd: dict) -> None:
    """Names that a target makes up would fill the memory of what is remembered."""
    assert usage_shape(USAGE | odd) is None
