"""One or two policy sets on the same traffic: everything that a what-if reports."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.config.settings import Settings
from gateway.whatif.apis import draw_latencies
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayOutcome
from gateway.whatif.replay_fleet import ReplayFleet
from gateway.whatif.report import AllApiBill, disagreement, result
from gateway.whatif.traffic import Arrival

Progress = Callable[[str, int], None]
"""(name of the set, requests that have come)"""


def run_whatif(
    house: ReplayFleet,
    sets: Sequence[tuple[str, Settings]],
    arrivals: Sequence[Arrival],
    seed: int,
    progress: Progress,
) -> dict[str, Any]:
    """Replay the sets and return the document; a second set is the baseline of the first.

    API latencies are drawn once per request from `seed`, equal for each set.
    """
    bill = AllApiBill(house, arrivals)
    found: list[list[ReplayOutcome]] = []
    results = []
    for name, rules in sets:
        planned = PolicyReplay(house, rules, arrivals[-1].at_s)
        apis = {
            api: draw_latencies(len(arrivals), event.latency, seed)
            for api, event in house.seen.items()
        }
        replay = Replay(
            planned.seats, {}, arrivals, (), apis=apis,
            progress=lambda done, name=name: progress(name, done),  # type: ignore[misc]  # bound now
        )  # fmt: skip
        outcomes = replay.run(planned)
        found.append(outcomes)
        results.append(result(name, house, planned, outcomes, bill))
    document = {"traffic": _traffic(house, arrivals), **_assumptions_of(house), "results": results}
    if len(found) > 1:
        document["disagreement"] = disagreement(found[1], found[0])
    return document


def _traffic(house: ReplayFleet, arrivals: Sequence[Arrival]) -> dict[str, Any]:
    begins = datetime.fromtimestamp(house.calendar.from_us / 1e6, UTC)
    return {
        "begins": f"{begins:%Y-%m-%d %H:%M UTC}",
        "requests": len(arrivals),
        "seconds": arrivals[-1].at_s,
        "beginnings": _beginnings(arrivals),
        "models": sorted({arrival.model for arrival in arrivals}),
        "prompt_tokens": sum(arrival.prompt_tokens for arrival in arrivals),
        "output_tokens": sum(arrival.output_tokens for arrival in arrivals),
    }


def _beginnings(arrivals: Sequence[Arrival]) -> str:
    """Return whether prefixes are in the traffic, or only recorded cache charges; else ""."""
    if any(arrival.prefix or arrival.session for arrival in arrivals):
        return "told"
    return "recorded" if any(arrival.recorded for arrival in arrivals) else ""


def _assumptions_of(house: ReplayFleet) -> dict[str, Any]:
    """Return the sources of the engines' and APIs' figures."""
    return {
        "engines": {name: engine.source for name, engine in house.engines.items()},
        "apis": {
            name: {
                "source": event.source,
                "ttft_ms_p50": 1e3 * event.latency.ttft_s,
                "tpot_ms_p50": 1e3 * event.latency.tpot_s,
            }
            for name, event in house.seen.items()
            if not name.endswith("/*")
        },
    }
