"""Settings that choose from a registry, in the registry's words and order."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from pydantic import Field, GetPydanticSchema
from pydantic_core import core_schema

from backends.engines import METERED, STARTED
from backends.providers import PROVIDER_KINDS
from gateway.config.sections import normalize_choice


def choice_schema(words: Iterable[str]) -> GetPydanticSchema:
    """Return a schema that makes a `str` field a choice of words known only at run time."""
    expected = list(words)
    schema = core_schema.no_info_before_validator_function(
        partial(normalize_choice, words=expected), core_schema.literal_schema(expected)
    )
    return GetPydanticSchema(lambda _type, _handler: schema)


EngineKindName = Annotated[
    str, choice_schema(STARTED), Field(description="program that serves the model")
]
MetricsPageName = Annotated[
    str,
    choice_schema(("auto", *METERED)),
    Field(
        description="kind of engine whose metrics page `endpoints` have; `auto` finds it by its "
        "names"
    ),
]
ProviderKindName = Annotated[
    str,
    choice_schema(PROVIDER_KINDS),
    Field(description="wire format: OpenAI-compatible, Anthropic's Messages, or LiteLLM's adapter"),
]
