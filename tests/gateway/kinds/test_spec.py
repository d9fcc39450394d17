"""The registry has an entry for every kind, and an entry is whole."""

import pytest

from gateway.kinds import BATCH_PATHS, KIND_PATHS, KINDS
from gateway.kinds.spec import KindUnits, RequestKindSpec
from gateway.request.dialects.translated_paths import SPOKEN
from ledger.journals.records import TokenCounts
from router.request_kinds import RequestKind


def test_every_kind_has_an_entry_of_its_own() -> None:
    assert list(KINDS) == list(RequestKind)
    assert all(spec.kind is kind for kind, spec in KINDS.items())


def test_no_path_is_served_by_two_kinds() -> None:
    assert len(KIND_PATHS) == sum(len(spec.paths) for spec in KINDS.values())
    assert set(KIND_PATHS).isdisjoint(SPOKEN)


def test_batches_take_what_openai_takes() -> None:
    assert BATCH_PATHS == ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")


def test_a_fact_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="missing"):
        RequestKindSpec(kind=RequestKind.CHAT)  # type: ignore[call-arg]  # that is what is tested
    with pytest.raises(TypeError, match="missing"):
        KindUnits(most=lambda _: TokenCounts())  # type: ignore[call-arg]  # as above


def test_spans_have_the_words_of_the_conventions() -> None:
    assert [spec.otel_operation for spec in KINDS.values()] == [
        "chat", "text_completion", "embeddings", "rerank", "transcription", "score",
        "moderation", "tokenize", "speech", "image_generation", "image_edit",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", RequestKind)
def test_answers_that_are_read_by_kind_have_units_of_their_own(kind: RequestKind) -> None:
    """Both come together today: `parse_answer` knows no searches and no seconds."""
    spec = KINDS[kind]
    assert (spec.units is None) == (spec.read_answer is None)
