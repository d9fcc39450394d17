"""One run of scenes: its house, what everybody was told, and the figures so far."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from crowd import CallerRecord, Crowd, Manner
from house import House
from scene import SceneFigures

MANNER = Manner(model="engines", streams=0.7, tokens=(10, 120), words=200, pause_s=0.02)


@dataclass(slots=True)
class Play:
    house: House
    seconds: float
    rounds: int
    say: Callable[[str], None]
    said: list[CallerRecord] = field(default_factory=list)
    found: SceneFigures = field(default_factory=SceneFigures)

    def crowd(self, hosts: list[Any], *, callers: int = 6, manner: Manner = MANNER) -> Crowd:
        made = Crowd(hosts, [self.house.hosts[0].token], manner, callers=callers)
        made.start()
        return made

    def ended(self, crowd: Crowd) -> list[CallerRecord]:
        said = crowd.stop()
        self.said += said
        return said


def kept(play: Play, names: Iterable[str]) -> tuple[int, int]:
    """(promises kept, promises missed) of these requests, by the books."""
    asked = set(names)
    rows = [row for row in play.house.hosts[0].rows() if row["request_id"] in asked]
    judged = [bool(row["slo_met"]) for row in rows if row["slo_met"] is not None]
    return sum(judged), len(judged) - sum(judged)
