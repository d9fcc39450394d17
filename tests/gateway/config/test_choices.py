"""A choice takes the words of its registry and no other, as a `Literal` would."""

from typing import Annotated, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from backends.engines import METERED, STARTED
from backends.providers import PROVIDER_KINDS
from gateway.config.choices import EngineKindName, MetricsPageName, ProviderKindName, choice_schema


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (EngineKindName, STARTED),
        (MetricsPageName, ("auto", *METERED)),
        (ProviderKindName, tuple(PROVIDER_KINDS)),
    ],
)
def test_each_word_of_the_registry_is_taken_and_no_other(choice, words) -> None:
    adapter = TypeAdapter(choice)
    assert adapter.json_schema()["enum"] == list(words)
    assert [adapter.validate_python(word) for word in words] == list(words)
    assert [adapter.validate_python(word.upper()) for word in words] == list(words)
    for wrong in ("none such", 1, None):
        with pytest.raises(ValidationError) as raised:
            adapter.validate_python(wrong)
        assert raised.value.errors()[0]["type"] == "literal_error"


def test_it_says_what_a_literal_says() -> None:
    said = []
    for kind in (Literal["a", "b"], Annotated[str, choice_schema(["a", "b"])]):
        adapter = TypeAdapter(kind)
        with pytest.raises(ValidationError) as raised:
            adapter.validate_python("c")
        said.append((raised.value.errors(), adapter.json_schema()))
    assert said[0] == said[1]
