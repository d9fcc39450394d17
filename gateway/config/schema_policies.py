"""The `policies` of the configuration file: whom a rule is for, and what it says.

What one field may hold is said here; what they say together, and of the models, is in
`crosschecks_policies`.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from gateway.config.sections import CLOCK, ConfigSection, Named, Positive, Ratio, Usd, Zone


def _number_tag(value: object) -> str:
    return "word" if isinstance(value, str) and not value[:1].isdigit() else "number"


# Tagged, so that a fault is told of the one form that was meant and not of each.
Floor = Annotated[
    Annotated[Ratio, Tag("number")] | Annotated[Literal["off"], Tag("word")],
    Discriminator(_number_tag),
]


Clock = Annotated[str, Field(pattern=CLOCK)]
Weight = Annotated[float, Field(gt=0.0, le=1_000_000.0)]
Percent = Annotated[float, Field(ge=0.0, le=100.0)]
POLICIES_MOST = 1000  # each request is matched against them in turn


class TimesSection(ConfigSection):
    """A window belongs to the days on which it begins."""

    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = Field(
        (), description="on which the window begins; empty: every day"
    )
    starts: Clock = Field("00:00", description="by the zone's own clock")
    ends: Clock = Field("24:00", description="before `starts`: on the next day")
    timezone: Zone = Field("UTC", description="IANA time zone, e.g. Europe/Berlin")

    @field_validator("starts", "ends", mode="before")
    @classmethod
    def _minutes_are_a_clock(cls, value: Any) -> Any:
        """YAML reads a bare `22:00` as the number 1320."""
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 24 * 60:
            return f"{value // 60:02}:{value % 60:02}"
        return value


class MatchSection(ConfigSection):
    models: tuple[str, ...] = Field((), description="logical models; empty matches all")
    teams: tuple[str, ...] = Field((), description="team ids; empty matches all")
    when: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="condition in CEL on the request, e.g. `prompt_tokens > 8000 && stream`",
    )
    times: tuple[TimesSection, ...] = Field((), description="hours of the week; empty: always")


class CanaryShareSection(ConfigSection):
    target: str = Field(description="`pool:NAME` or `PROVIDER/MODEL`, one of the model's")
    percent: Percent = Field(
        description="of the requests go there first; the others never: a session stays on its side"
    )


class PolicySloSection(ConfigSection):
    ttft_ms: Positive | None = Field(None, description="time to first token")
    tpot_ms: Positive | None = Field(None, description="time per output token after the first")
    attainment: Ratio = Field(0.95, description="share of requests that must meet it")
    strict: bool = Field(False, description="filter APIs too on a likely miss")


class PolicyRuleSection(ConfigSection):
    name: Named = Field(description="shown in headers, metrics and the ledger")
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
        "reject", description="when nothing is feasible"
    )
    queue_ms: Positive = Field(2000.0, description="longest wait when `otherwise: queue`")
    priority: Literal["high", "normal", "low"] = Field(
        "normal",
        description="told to own engines that run with `--scheduling-policy priority`, no others",
    )
    residency: Literal["any", "internal_only"] = Field(
        "any", description="may only tighten the model's"
    )
    candidates: tuple[str, ...] = Field(
        (), description="of the model's targets only these; empty: all"
    )
    weights: dict[str, Weight] = Field(
        default_factory=dict,
        description="target to weight: which one goes first, by a hash of session or request",
    )
    canary: CanaryShareSection | None = Field(None, description="a small share for one target")
    shadow: bool = Field(
        False, description="decided by and recorded, never acted upon: the next match acts"
    )
    max_quality_loss: Ratio | None = Field(
        None, description="targets whose `quality_loss` is greater, or not stated, are left out"
    )


Policies = Annotated[tuple[PolicyRuleSection, ...], Field(max_length=POLICIES_MOST)]
