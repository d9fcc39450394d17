"""Section `response_cache`: which answers are reused, their age and number."""

from typing import Annotated

from pydantic import Field

from gateway.config.sections import ConfigSection


class ResponseCacheSection(ConfigSection):
    enabled: bool = Field(
        False,
        description="whether equal requests of one team, with the same tags and residency, may be "
        "given an earlier answer: embeddings, and texts at `temperature: 0` or with a `seed`",
    )
    models: tuple[str, ...] = Field((), description="models that this is for; none named: all")
    max_age_s: Annotated[float, Field(gt=0.0, le=2_678_400.0)] = Field(
        3600.0, description="age at which an answer is given no more"
    )
    bytes: int = Field(
        64 * 1024 * 1024,
        ge=1024 * 1024,
        le=1024**4,
        description="memory of one host for answers, split between its workers; oldest go first",
    )
    answer_bytes: int = Field(
        1024 * 1024, ge=1024, description="largest answer that is kept, with its headers"
    )
