"""Kinds that are found by themselves."""

import re

from gateway.config.content_kinds import CONTENT_KINDS
from gateway.config.schema_content import KIND
from router.content import UNKNOWN


def test_names_can_stand_in_headers_and_unknown_is_one() -> None:
    assert UNKNOWN in CONTENT_KINDS
    assert all(re.fullmatch(KIND, name) for name in CONTENT_KINDS)
    assert all(
        (words and words[0].islower()) or words.startswith("IP") for words in CONTENT_KINDS.values()
    )
