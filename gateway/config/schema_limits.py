"""Sections that limit use: budgets, and rates per minute."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.config.sections import (
    ConfigSection,
    TotalUsd,
    Zone,
)
from ledger.money import PPM

THRESHOLDS_MOST = 16


def _is_told(share: float) -> float:
    if round(share * PPM) < 1:  # alerts are stored in parts per million: 0 would alert at once
        raise ValueError(f"the least share is 0.000001, a millionth of the limit: not {share:g}")
    return share


Threshold = Annotated[float, Field(gt=0.0, le=10.0), AfterValidator(_is_told)]


class BudgetSection(ConfigSection):
    scope: str = Field(
        description="`team:search`, `org:acme`, `tag:app=web`, `tag:app`, `provider:openai`, "
        "`external` (all real APIs), ...; `user:*`, `team:*`, `key:*`, `tag:run=*`: each without "
        "their own",
    )
    usd: TotalUsd = Field(description="limit of one period")
    period: Literal["day", "month"] = Field("month", description="calendar-aligned window")
    hard: bool = Field(
        True,
        description="whether requests are refused before the limit is passed; else alerts are "
        "sent only",
    )
    timezone: Zone = Field("UTC", description="IANA time zone of the window; default: `timezone`")
    alert_at: Annotated[tuple[Threshold, ...], Field(max_length=THRESHOLDS_MOST)] = Field(
        (0.8, 1.0),
        description="shares of the limit at which an alert is sent, once a window; at "
        "least a millionth",
    )


EACH = "*"  # in place of a scope's name: each member of the kind separately


class RateLimitSection(ConfigSection):
    scope: str = Field(
        description="`key:*` (each key by itself), `team:search`, `model:chat`, `user:*`, "
        "`tag:app=web`, `org:acme`, `global`; a name goes before `*`",
    )
    requests_per_minute: Annotated[int, Field(gt=0, le=10**9)] | None = Field(
        None, description="requests that are let in within any 60 s"
    )
    tokens_per_minute: Annotated[int, Field(gt=0, le=10**12)] | None = Field(
        None, description="tokens of prompts and answers, counted ahead and corrected at the end"
    )
