"""The sections of a pool that say how it is kept: restarts and pauses, and whether it drifts."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sections import ConfigSection, Positive, Ratio, Variable, Zone


class UpkeepSection(ConfigSection):
    """For engines that `serve` starts. Times are cron expressions of five fields, in `timezone`."""

    timezone: Zone = Field("UTC", description="IANA time zone of the times")
    restart: str | None = Field(
        None,
        description="when its engines are restarted, one after the other: `0 4 * * SUN`",
    )
    restart_on_decay: Annotated[float, Field(gt=0.0, lt=1.0)] | None = Field(
        None,
        description="restart an engine that lost such a share of its own first hours' throughput "
        "at like load: 0.15",
    )
    patience_h: Positive = Field(
        4.0, description="hours in which a restart that is due waits until the others can carry"
    )
    stop: str | None = Field(
        None, description="when its engines are drained and stopped: `0 20 * * MON-FRI`"
    )
    start: str | None = Field(None, description="when they are started again: `0 7 * * MON-FRI`")

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.restart or self.restart_on_decay or self.stop)


class SamplingSection(ConfigSection):
    """Live requests of some teams, asked again of a baseline; only counts of them are kept."""

    teams: tuple[str, ...] = Field(description="that agreed: of no other team anything is sampled")
    model: str = Field(description="model whose only target is this pool: what is judged")
    baseline: str = Field(description="model of own pools that answers as it should")
    key_env: Variable = Field(
        description="environment variable with the gateway key of the account that pays for it"
    )
    share: Ratio = Field(0.01, description="of those teams' conversations")
    per_hour: int = Field(60, ge=1, le=100_000, description="questions in any hour, at most")
    risk: Literal["low", "high"] = Field(
        "low", description="tokens that may differ: low 5 %, high 1 %"
    )
    window: int = Field(200, ge=20, le=10_000, description="last questions that are judged by")
    tokens: int = Field(48, ge=1, le=1024, description="of each answer")
