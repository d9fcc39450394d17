"""Paths and their dialects."""

from gateway.kinds import KIND_PATHS
from gateway.request.dialects.translated_paths import SPOKEN


def test_paths_have_one_dialect_each() -> None:
    assert set(SPOKEN).isdisjoint(KIND_PATHS)
    assert [path for path, dialect in SPOKEN.items() if dialect.counts] == [
        "/v1/messages/count_tokens"
    ]
