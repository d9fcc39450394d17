"""Words about engines, left by the process that starts them."""

from pathlib import Path

from gateway.targets.enginewords import leave_words, words_of


def test_words_are_found_by_engine_and_gone_with_their_reason(tmp_path: Path) -> None:
    assert words_of(tmp_path) == {}
    leave_words(tmp_path, {"pool:a/0": "exited with 1: no memory", "pool:a/1": ""})
    assert words_of(tmp_path) == {"pool:a/0": "exited with 1: no memory"}
    leave_words(tmp_path, {})
    assert words_of(tmp_path) == {}
