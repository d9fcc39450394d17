"""Checks of upkeep: invalid times, engines that are not ours, models without an engine."""

from collections.abc import Iterator

from gateway.config.aliases import logical_models
from gateway.config.faults import ConfigFault, warning
from gateway.config.pool_seats import seat_count, started_count
from gateway.config.schedules import CronSchedule, ScheduleError
from gateway.config.schema import Settings


def check_upkeep(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        kept, here = pool.upkeep, ("pools", name, "upkeep")
        for field in ("restart", "stop", "start"):
            words = getattr(kept, field)
            if words is None:
                continue
            try:
                CronSchedule(words, kept.timezone)
            except ScheduleError as error:
                message = f"`{words}` is not a time: {error}; write it like `0 4 * * SUN`"
                if "time zone" in str(error):
                    message = str(error)
                yield ConfigFault((*here, field), message)
        if (kept.stop is None) is not (kept.start is None):
            missing = "stop" if kept.stop is None else "start"
            yield ConfigFault(
                (*here, missing), "is required: engines are stopped and started by both"
            )
        if kept.any and not started_count(pool):
            yield ConfigFault(here, "is for engines that are started here (`replicas`)")
            continue
        alone = sorted(
            model
            for model, section in logical_models(settings)
            if set(section.reachable) == {f"pool:{name}"}
        )
        restarts = kept.restart is not None or kept.restart_on_decay is not None
        count = seat_count(pool)
        if restarts and alone and count == 1:
            words = f"its only engine is never restarted: `{alone[0]}` has no other target"
            yield ConfigFault(here, f"{words}; add a replica or a target")
        if kept.stop and kept.start and alone:
            words = f"`{alone[0]}` has no other target: its requests are refused meanwhile"
            yield warning((*here, "stop"), words, upon=(("models",),))
