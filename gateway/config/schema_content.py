"""Section `content`: an operator's patterns, and guardrails called over HTTP."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sections import URL, ConfigSection, Positive

KIND = r"^[a-z][a-z0-9_-]{0,39}$"  # used in headers, metrics and the ledger
KindName = Annotated[str, Field(pattern=KIND)]
PATTERNS_MOST = 200


class ContentHookSection(ConfigSection):
    url: Annotated[str, Field(pattern=URL)] = Field(
        description="address that gets the texts as JSON by POST, before or after the target"
    )
    form: Literal["breakeven", "presidio"] = Field(
        "breakeven",
        description="what it speaks: `presidio` is the analyzer's `POST /analyze`, which rewrites "
        "nothing",
    )
    language: Annotated[str, Field(pattern=r"^[a-z]{2}$")] = Field(
        "en", description="language that Presidio reads the texts in; it must have a model for it"
    )
    least_score: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5, description="least score of a find of Presidio's that counts"
    )
    stage: Literal["before", "after"] = Field(
        "before", description="whether it reads what is asked or what is answered"
    )
    address_residency: Literal["internal_only", "any"] = Field(
        "any",
        description="where the address is: `internal_only` inside the network, else nothing is "
        "sent to it that must stay inside",
    )
    timeout_ms: Annotated[Positive, Field(le=30_000)] = Field(
        500.0, description="longest wait for its answer; then it counts as failed, which tightens"
    )
    largest_bytes: Annotated[int, Field(gt=0, le=64 * 1024 * 1024)] = Field(
        4 * 1024 * 1024, description="texts of more bytes are not sent, which counts as failed"
    )


class ContentSection(ConfigSection):
    patterns: Annotated[dict[KindName, str], Field(max_length=PATTERNS_MOST)] = Field(
        default_factory=dict,
        description="kinds of your own by name: a regular expression each, without lookaround and "
        "back references",
    )
    hooks: dict[KindName, ContentHookSection] = Field(
        default_factory=dict,
        description="guardrails of your own by name, which policies name as a kind",
    )
