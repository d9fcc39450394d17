"""Each kind of request has its traits, and its word stays: records and settings hold it."""

import pytest

from router.request_kinds import DECODED_KINDS, KIND_TRAITS, KindTraits, PromptCount, RequestKind


def test_every_kind_has_its_traits() -> None:
    assert list(KIND_TRAITS) == list(RequestKind)


def test_a_trait_cannot_be_left_out() -> None:
    with pytest.raises(TypeError):
        KindTraits()  # type: ignore[call-arg]  # that is what is tested


def test_conversations_alone_are_decoded() -> None:
    assert {RequestKind.CHAT, RequestKind.COMPLETION} == DECODED_KINDS


def test_a_context_bounds_conversations_alone() -> None:
    bounded = {
        kind: traits.prompts
        for kind, traits in KIND_TRAITS.items()
        if traits.prompts is not PromptCount.LISTED
    }
    assert bounded == {
        RequestKind.CHAT: PromptCount.ONE, RequestKind.COMPLETION: PromptCount.PER_CHOICE,
    }  # fmt: skip


def test_words_in_records_stay() -> None:
    assert [kind.value for kind in RequestKind] == [
        "chat", "completion", "embedding", "rerank", "transcription", "score", "moderation",
        "tokenize", "speech", "image_generation", "image_edit",
    ]  # fmt: skip
