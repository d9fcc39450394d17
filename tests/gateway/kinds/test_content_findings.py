"""What was found, in words for headers and rows."""

from gateway.kinds.content_findings import LONGEST_LABEL, ContentFindings


def test_kinds_counts_and_actions_are_told() -> None:
    found = ContentFindings((("card", 2), ("email", 1)), ("mask", "keep_inside"), "card")
    assert found.row == "card=2 email=1; mask keep_inside"
    assert ContentFindings().row == "nothing"


def test_many_kinds_are_cut() -> None:
    found = ContentFindings(tuple((f"kind-{number}", 1) for number in range(99)))
    assert len(found.row) == LONGEST_LABEL
