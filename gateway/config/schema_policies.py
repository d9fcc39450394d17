"""Section `policies`: whom each rule is for, and its terms.

Single fields are checked here, combinations and models in `crosschecks_policies`.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from gateway.config.sections import CLOCK, ConfigSection, Named, Positive, Ratio, Usd, Zone


def _number_tag(value: object) -> str:
    return "word" if isinstance(value, str) and not value[:1].isdigit() else "number"


# Tagged, so that a fault is reported for the intended form only.
Floor = Annotated[
    Annotated[Ratio, Tag("number")] | Annotated[Literal["off"], Tag("word")],
    Discriminator(_number_tag),
]


ContentWord = Literal["record", "mask", "keep_inside", "refuse"]
Clock = Annotated[str, Field(pattern=CLOCK)]
Weight = Annotated[float, Field(gt=0.0, le=1_000_000.0)]
Percent = Annotated[float, Field(ge=0.0, le=100.0)]
POLICIES_MOST = 1000  # each request is matched against them in turn


class TimesSection(ConfigSection):
    """Hours of the week; a window belongs to the day on which it begins."""

    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = Field(
        (), description="days on which the window begins; empty: every day"
    )
    starts: Clock = Field("00:00", description="start of the window by the zone's own clock")
    ends: Clock = Field(
        "24:00", description="end of the window; an end before `starts` is on the next day"
    )
    timezone: Zone = Field("UTC", description="IANA time zone, e.g. Europe/Berlin")

    @field_validator("starts", "ends", mode="before")
    @classmethod
    def _minutes_are_a_clock(cls, value: Any) -> Any:
        """Convert a bare `22:00`, which YAML reads as the number 1320."""
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 24 * 60:
            return f"{value // 60:02}:{value % 60:02}"
        return value


class MatchSection(ConfigSection):
    models: tuple[str, ...] = Field(
        (), description="logical models that the rule matches; empty: all"
    )
    teams: tuple[str, ...] = Field((), description="ids of teams that the rule matches; empty: all")
    when: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="condition in CEL on the request, e.g. `prompt_tokens > 8000 && stream`",
    )
    times: tuple[TimesSection, ...] = Field(
        (), description="hours of the week in which the rule matches; empty: always"
    )


class CanaryShareSection(ConfigSection):
    target: str = Field(description="`pool:NAME` or `PROVIDER/MODEL`, one of the model's")
    percent: Percent = Field(
        description="share of the requests that try the target first; the others never do, and a "
        "session stays on its side"
    )


class PolicySloSection(ConfigSection):
    ttft_ms: Positive | None = Field(None, description="time to first token")
    tpot_ms: Positive | None = Field(None, description="time per output token after the first")
    attainment: Ratio = Field(0.95, description="share of requests that must meet the promise")
    strict: bool = Field(
        False, description="whether APIs that are likely to miss are left out, too"
    )


class PolicyRuleSection(ConfigSection):
    name: Named = Field(description="name of the rule in headers, metrics and the ledger")
    match: MatchSection = MatchSection()
    slo: PolicySloSection = PolicySloSection()
    kv_headroom_floor: Floor = Field(
        0.10, description="share of KV cache that stays free after admission; `off`: no KV filter"
    )
    penalty_usd: Usd | None = Field(
        None,
        description="price of one SLO miss; default: 5 x the request's price at its comparator",
    )
    max_usd_per_request: Usd | None = Field(None, description="cap on one request's cost bound")
    otherwise: Literal["queue", "best_effort", "reject"] = Field(
        "reject", description="treatment of a request that no target can serve as promised"
    )
    queue_ms: Positive = Field(2000.0, description="longest wait with `otherwise: queue`")
    priority: Literal["high", "normal", "low"] = Field(
        "normal",
        description="priority that is sent to own engines that run with `--scheduling-policy "
        "priority`",
    )
    residency: Literal["any", "internal_only"] = Field(
        "any",
        description="`internal_only` keeps requests inside; a rule can only tighten what the "
        "model says",
    )
    candidates: tuple[str, ...] = Field(
        (), description="targets of the model that may serve the rule's requests; empty: all"
    )
    weights: dict[str, Weight] = Field(
        default_factory=dict,
        description="weight of each target that is tried first, chosen by a hash of session or "
        "request",
    )
    canary: CanaryShareSection | None = Field(None, description="a small share for one target")
    shadow: bool = Field(
        False,
        description="whether the rule is decided by and recorded only; the next rule that "
        "matches acts",
    )
    content: dict[str, ContentWord] = Field(
        default_factory=dict,
        description="what becomes of a request by the kinds of content that are found in it: "
        "`record`, `mask`, `keep_inside` or `refuse`; with any, `unknown` is kept inside unless "
        "stated",
    )
    max_quality_loss: Ratio | None = Field(
        None,
        description="greatest `quality_loss` of a target; others, and those that state none, are "
        "left out",
    )


Policies = Annotated[tuple[PolicyRuleSection, ...], Field(max_length=POLICIES_MOST)]
