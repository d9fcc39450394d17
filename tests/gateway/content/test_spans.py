"""What a pattern finds around places."""

import re

from gateway.content.spans import Span, matches_around


def test_a_pattern_looks_around_places_alone() -> None:
    text = "ab 12 cd 34 ef 56"
    found = [match[0] for match in matches_around(re.compile(r"\d+"), text, [10], (3, 2))]
    assert found == ["34"]
    assert Span("card", 0, 4, "4111").kind == "card"
