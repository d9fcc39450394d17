"""A line is found by the name of its attempt, whatever a provider writes there."""

import pytest

from gateway.batches.provider_line_booker import _number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("batch_1-7-1.1", 7), ("batch-with-dashes-12-3.1", 12), ("x", -1), ("", -1),
        ("a-b-c", -1), ("a--1", -1), ("a-" + "9" * 5000 + "-1", -1), ("a-1e3-1", -1),
    ],
)  # fmt: skip
def test_the_number_of_a_line(name: str, number: int) -> None:
    assert _number(name) == number
