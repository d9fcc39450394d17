"""The section of a pool that says when its engines are restarted, stopped and started again."""

from typing import Annotated

from pydantic import Field

from gateway.sections import Positive, Section


class Upkeep(Section):
    """For engines that `serve` starts. Times are cron expressions of five fields, in `timezone`."""

    timezone: str = Field("UTC", description="IANA time zone of the times")
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
