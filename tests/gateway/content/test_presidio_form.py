"""What Presidio's analyzer is asked, and how its answer counts."""

import json

import pytest

from gateway.content.presidio_form import presidio_ask, presidio_found


def find(start: int, end: int, score: float) -> dict[str, object]:
    return {"entity_type": "PERSON", "start": start, "end": end, "score": score}


def test_finds_of_all_texts_count_by_entity_from_a_score_on() -> None:
    said = json.dumps([[find(0, 1, 0.5), find(0, 1, 0.4)], [find(0, 2, 1)]]).encode()
    assert presidio_found(said, ["a", "bc"], 0.5) == {"person": 2}
    assert presidio_ask(["a"], "en", 0.5) == {
        "text": ["a"], "language": "en", "score_threshold": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize("finds", [[], [[find(0, 3, 1)]], [[find(1, 1, 1)]], [[{}]], {}])
def test_another_form_is_no_answer(finds) -> None:
    with pytest.raises(ValueError):
        presidio_found(json.dumps(finds).encode(), ["ab"], 0.5)
