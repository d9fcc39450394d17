"""Settings that choose from a registry: the words are the registry's, in its order."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from pydantic import Field, GetPydanticSchema
from pydantic_core import core_schema

from backends.engines import METERED, STARTED
from backends.providers import PROVIDER_KINDS
from gateway.config.sections import choice_spelled


def one_of(words: Iterable[str]) -> GetPydanticSchema:
    """Return what makes a `str` field a choice of words that are known only at run time."""
    expected = list(words)
    schema = core_schema.no_info_before_validator_function(
        partial(choice_spelled, words=expected), core_schema.literal_schema(expected)
    )
    return GetPydanticSchema(lambda _type, _handler: schema)


EngineKindName = Annotated[str, one_of(STARTED), Field(description="what serves the model")]
MetricsPageName = Annotated[
    str,
    one_of(("auto", *METERED)),
    Field(description="whose metrics page `endpoints` have; `auto`: found by its names"),
]
ProviderKindName = Annotated[
    str,
    one_of(PROVIDER_KINDS),
    Field(description="wire format: OpenAI-compatible, or LiteLLM's adapter"),
]
