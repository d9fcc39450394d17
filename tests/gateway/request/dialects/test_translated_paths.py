"""Paths and their dialects."""

from gateway.kinds import KIND_PATHS
from gateway.request.dialects.translated_paths import SPOKEN


def test_paths_have_one_dialect_each() -> None:
    assert set(SPOKEN).isdisjoint(KIND_PATHS)
    purposes = {path: dialect.purpose for path, dialect in SPOKEN.items()}
    assert purposes == {
        "/v1/messages": "answer",
        "/v1/messages/count_tokens": "count",
        "/v1/responses": "answer",
        "/v1/responses/input_tokens": "count",
        "/v1/responses/compact": "compaction",
    }
    assert {path for path, dialect in SPOKEN.items() if dialect.continues} == {
        path for path in SPOKEN if path.startswith("/v1/responses")
    }
