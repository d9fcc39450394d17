"""Settings take the word of every kind, and no other word."""

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.config.served_kinds import (
    ENGINE_DEFAULT,
    PROVIDER_DEFAULT,
    ServedKind,
    can_apis_serve,
    can_engines_serve,
    list_other_kinds,
)
from router.request_kinds import RequestKind

WORDS = TypeAdapter(tuple[ServedKind, ...])


def test_every_kind_can_be_served() -> None:
    words = tuple(kind.value for kind in RequestKind)
    found = WORDS.validate_python(words)
    assert found == words
    assert {type(word) for word in found} == {str}  # as they go into files


def test_no_other_word_is_taken() -> None:
    with pytest.raises(ValidationError, match="'chat', 'completion', 'embedding'"):
        WORDS.validate_python(("chats",))


def test_a_setting_names_what_its_default_leaves_out() -> None:
    assert list_other_kinds(ENGINE_DEFAULT, can_engines_serve) == (
        "`embedding`, `rerank`, `transcription`, `score`"
    )
    assert list_other_kinds(PROVIDER_DEFAULT, can_apis_serve) == (
        "`rerank`, `transcription`, `score`, `moderation`, `speech`, `image_generation`, "
        "`image_edit`"
    )
