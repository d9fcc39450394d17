"""Sections for the upkeep of a pool: restarts and pauses, and drift sampling."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sections import ConfigSection, Positive, Ratio, Variable, Zone


class UpkeepSection(ConfigSection):
    """Upkeep of engines that `serve` starts; times are five-field cron expressions."""

    timezone: Zone = Field("UTC", description="IANA time zone of the times")
    restart: str | None = Field(
        None,
        description="times at which the pool's engines are restarted, one after the other: `0 4 "
        "* * SUN`",
    )
    restart_on_decay: Annotated[float, Field(gt=0.0, lt=1.0)] | None = Field(
        None,
        description="share of its own first hours' throughput at like load whose loss restarts "
        "an engine: 0.15",
    )
    patience_h: Positive = Field(
        4.0, description="hours for which a restart that is due waits until the others can carry"
    )
    stop: str | None = Field(
        None,
        description="times at which the pool's engines are drained and stopped: `0 20 * * MON-FRI`",
    )
    start: str | None = Field(
        None, description="times at which the pool's engines are started again: `0 7 * * MON-FRI`"
    )

    @property
    def any(self) -> bool:
        """Return whether any upkeep is configured."""
        return bool(self.restart or self.restart_on_decay or self.stop)


class SamplingSection(ConfigSection):
    """Repetition of some teams' live requests at a baseline; only counts are stored."""

    teams: tuple[str, ...] = Field(
        description="teams that agreed; nothing of any other team is sampled"
    )
    model: str = Field(description="model whose only target is this pool; its answers are judged")
    baseline: str = Field(description="model of own pools whose answers are the reference")
    key_env: Variable = Field(
        description="environment variable with the gateway key of the account that pays for it"
    )
    share: Ratio = Field(0.01, description="share of those teams' conversations that is sampled")
    per_hour: int = Field(
        60, ge=1, le=100_000, description="questions that may be asked in any hour"
    )
    risk: Literal["low", "high"] = Field(
        "low", description="tokens that may differ: low 5 %, high 1 %"
    )
    window: int = Field(
        200, ge=20, le=10_000, description="number of last questions by which the pool is judged"
    )
    tokens: int = Field(48, ge=1, le=1024, description="tokens that each answer has at most")
