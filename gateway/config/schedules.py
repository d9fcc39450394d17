"""Calendar times of a pool's upkeep: previous and next times, and running pauses.

Pure: times are microseconds since the epoch. Cron expressions are read as in Debian's cron: a time
skipped by daylight saving counts at the change, a repeated one counts once.
"""

from datetime import datetime

from cronsim import CronSim, CronSimError

from gateway.config.schema_upkeep import UpkeepSection
from ledger.budgets.windows import WindowError, zone_stated

YEARS = 366 * 86_400 * 1_000_000  # a time further away counts as never


class ScheduleError(Exception):
    """Error: an invalid calendar time; the message says what is wrong."""


class CronSchedule:
    """Cron expression in a time zone."""

    def __init__(self, words: str, timezone: str = "UTC") -> None:
        try:
            self._zone = zone_stated(timezone)
            if len(words.split()) != 5:
                raise ScheduleError("has five fields: minute hour day month weekday")
            CronSim(words, datetime(2026, 1, 1, tzinfo=self._zone))
        except (CronSimError, WindowError) as error:
            raise ScheduleError(str(error)) from error
        self._words = words

    def last_us(self, now_us: int) -> int | None:
        """Return the latest time up to now; `None` if there was none in a year."""
        return self._nearest_us(now_us + 1_000_000, now_us, reverse=True)

    def next_us(self, now_us: int) -> int | None:
        """Return the first time after now; `None` if there is none in a year."""
        return self._nearest_us(now_us, now_us, reverse=False)

    def _nearest_us(self, from_us: int, now_us: int, *, reverse: bool) -> int | None:
        at = datetime.fromtimestamp(from_us // 1_000_000, tz=self._zone)
        for item in CronSim(self._words, at, reverse=reverse):
            us = round(item.timestamp()) * 1_000_000
            if abs(us - now_us) > YEARS:
                return None
            if us <= now_us if reverse else us > now_us:
                return us
        return None


def restart_due_us(upkeep: UpkeepSection, now_us: int) -> int | None:
    """Return when the last scheduled restart was due, or `None`."""
    if upkeep.restart is None:
        return None
    return CronSchedule(upkeep.restart, upkeep.timezone).last_us(now_us)


def restart_next_us(upkeep: UpkeepSection, now_us: int) -> int | None:
    if upkeep.restart is None:
        return None
    return CronSchedule(upkeep.restart, upkeep.timezone).next_us(now_us)


def stopped_since_us(upkeep: UpkeepSection, now_us: int) -> int | None:
    """Return since when the engines are to be stopped; `None` if they are to run."""
    if upkeep.stop is None or upkeep.start is None:
        return None
    stopped = CronSchedule(upkeep.stop, upkeep.timezone).last_us(now_us)
    started = CronSchedule(upkeep.start, upkeep.timezone).last_us(now_us)
    if stopped is None or (started is not None and started >= stopped):
        return None
    return stopped


def starts_us(upkeep: UpkeepSection, now_us: int) -> int | None:
    """Return when the engines are started next, or `None`."""
    return (
        None
        if upkeep.start is None
        else CronSchedule(upkeep.start, upkeep.timezone).next_us(now_us)
    )
