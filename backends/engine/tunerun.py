"""Run of a flag search: measures and logs trials, then compares the best with defaults.

The comparison alternates fresh servers (defaults, best, defaults, best). A machine that became
warmer or busier during the search would otherwise be mistaken for an effect of a flag.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self

from backends.engine.benchfigures import (
    PUSD,
    BenchSlo,
    Percentile,
    RunSummary,
    cost_pusd_per_million,
)
from backends.engine.benchload import PromptShape, closed_load
from backends.engine.environment import CpuOptions, Environment, Flavour
from backends.engine.flags import BadFlags, EngineLaunch
from backends.engine.trial import (
    DRAIN_S,
    DidNotServe,
    RunningServer,
    TrialMeter,
    make_vllm_trial,
    meter,
    serving,
)
from backends.engine.tune import (
    Arm,
    BaselineFailed,
    FlagDimension,
    LoadPoint,
    LoadSearch,
    TrialRequest,
    TuneEffort,
    defaults,
    flags_of,
    search,
    search_each,
    search_upwards,
)
from backends.engine.worklog import WorkLog
from backends.errors import BackendError

Objective = Literal["ttft", "tpot", "throughput", "cost"]
NAME = "tune"
FINALS = 4
_OF_LEVEL = (1.5, 3.0)  # requests of a run by level, as a factor of concurrency
_LEAST = 12
_SPREAD_S = 8.0


@dataclass(frozen=True, slots=True)
class TuneGoal:
    """Goal of a search. A load is inside the SLO if its 99th percentiles are."""

    objective: Objective
    promise: BenchSlo
    usd_per_hour: Decimal | None = None

    @property
    def by_load(self) -> bool:
        """Return whether the search also chooses the load. Otherwise the load is given."""
        return self.objective in ("throughput", "cost")

    @property
    def unit(self) -> str:
        units = {"ttft": "s", "tpot": "s", "throughput": "output tokens/s", "cost": "USD per 1M"}
        return units[self.objective]

    def is_met(self, point: RunSummary) -> bool:
        pairs = ((point.ttft, self.promise.ttft_s), (point.tpot, self.promise.tpot_s))
        return point.failed == 0 and all(
            most is None or _of(values, 99) <= most for values, most in pairs
        )

    def figure(self, point: RunSummary) -> float:
        """Return the figure that the goal compares, in `unit`."""
        if self.objective in ("ttft", "tpot"):
            return _of(getattr(point, self.objective), 50)
        tokens = point.rates.output_tokens
        if self.objective == "throughput":
            return tokens
        assert self.usd_per_hour is not None, "asked for with the objective"
        both = cost_pusd_per_million(self.usd_per_hour, point.rates.input_tokens + tokens)
        return float("inf") if both is None else both / PUSD

    def score(self, figure: float) -> float:
        return figure if self.objective == "throughput" else -figure

    def gain(self, best: float, default: float) -> float:
        """Return the factor by which `best` is better than `default`; 1 is equal."""
        return best / default if self.objective == "throughput" else default / best


def _of(values: Sequence[Percentile], percent: int) -> float:
    return next((value.value_s for value in values if value.percent == percent), float("inf"))


@dataclass(frozen=True, slots=True)
class TuneRun:
    """Parameters of a search. `first` is the number of concurrent requests to start with.

    For TTFT and TPOT it is the load of all trials.
    """

    model: Path
    environment: Environment
    flavour: Flavour
    shape: PromptShape
    goal: TuneGoal
    first: int
    logs: Path
    space: tuple[FlagDimension, ...]
    effort: TuneEffort = field(default_factory=TuneEffort)
    base: tuple[str, ...] = ()  # flags of every server, including the baseline
    start_limit_s: float = 900.0


@dataclass(frozen=True, slots=True)
class TuneResult:
    """Result of a search so far. `finals` are in the goal's unit.

    If `ended` is false, the search can continue in another run. `gain` compares means, `turns` are
    the gains of each turn of the comparison. `failed` says why the comparison has no result.
    """

    best: Arm
    ended: bool
    trials: int
    finals: tuple[float, ...] = ()
    gain: float = 1.0
    failed: str = ""
    turns: tuple[float, ...] = ()

    @property
    def is_better(self) -> bool:
        """Return whether the best arm beat the defaults in every turn of the comparison.

        With one lost turn, a better mean may be chance.
        """
        return self.gain > 1 and all(turn > 1 for turn in self.turns)


async def tune(
    tuning: TuneRun,
    log: WorkLog,
    say: Callable[[str], None],
    *,
    until_s: float,
    arm: Arm | None = None,
) -> TuneResult:
    """Search until the monotonic time `until_s`, then compare the best arm with the defaults.

    With `arm` there is no search, only the comparison. If the defaults failed, the next call tries
    them again, because no flag of the search caused it. Raises `BaselineFailed` with the cause.
    """
    if arm is not None:
        return await _compare_arms(tuning, log, say, arm, 0, until_s)
    looking = search(tuning.space, tuning.effort)
    best, ask, trials = defaults(tuning.space), next(looking), 0
    async with _Servers(tuning) as servers:
        while True:
            entry = log.done.get(ask.key, {})
            if not entry or ("score" not in entry and ask.arm == defaults(tuning.space)):
                if time.monotonic() >= until_s:
                    return TuneResult(best, ended=False, trials=trials)
                say(ask.key)
                entry = log.add(ask.key, await _try_arm(tuning, ask, log.done, servers))
            trials += 1
            best = ask.rival or best
            try:
                ask = looking.send(entry.get("score"))
            except BaselineFailed:
                words = f"vLLM's defaults could not be measured: {entry['failed']}"
                raise BaselineFailed(words) from None
            except StopIteration as end:
                best = end.value
                break
    if best == defaults(tuning.space):
        return TuneResult(best, ended=True, trials=trials)
    return await _compare_arms(tuning, log, say, best, trials, until_s)


async def _compare_arms(
    tuning: TuneRun,
    log: WorkLog,
    say: Callable[[str], None],
    best: Arm,
    trials: int,
    until_s: float,
) -> TuneResult:
    """Measure defaults, best, defaults, best, and compare the means.

    If the search chooses the load, both are measured at the loads that each has chosen. A load
    search that ended early by chance would otherwise make its arm look slow.
    """
    last = tuning.effort.levels - 1
    pair = [TrialRequest(arm, last) for arm in (defaults(tuning.space), best)]
    looks = pair if tuning.goal.by_load else []
    steps = [(ask.key, ask) for ask in looks]
    steps += [
        (f"final {turn}: {' | '.join(pair[turn % 2].arm)}", pair[turn % 2])
        for turn in range(FINALS)
    ]
    figures: list[float] = []
    for key, ask in steps:
        is_final = key != ask.key
        if "figure" not in log.done.get(key, {}):
            if time.monotonic() >= until_s:
                return TuneResult(best, ended=False, trials=trials)
            say(key)
            loads = sorted({int(log.done[look.key]["at_once"]) for look in looks if is_final})
            async with _Servers(tuning) as fresh:
                log.add(key, await _try_arm(tuning, ask, log.done, fresh, loads))
        entry = log.done[key]
        if "figure" not in entry:
            failed = f"{key}: {entry['failed']}"
            return TuneResult(
                best, ended=False, trials=trials, finals=tuple(figures), failed=failed
            )
        figures += [float(entry["figure"])] if is_final else []
    default, ours = (sum(figures[place::2]) / (FINALS // 2) for place in (0, 1))
    gain = tuning.goal.gain
    pairs = zip(figures[::2], figures[1::2], strict=True)
    return TuneResult(
        best, ended=True, trials=trials, finals=tuple(figures), gain=gain(ours, default),
        turns=tuple(gain(tuned, plain) for plain, tuned in pairs),
    )  # fmt: skip


class _Servers:
    """Server of the arm that was requested last, reused while the arm stays the same.

    A longer trial mostly follows a shorter one of the same arm, and a start costs more than a
    trial.
    """

    def __init__(self, tuning: TuneRun) -> None:
        self._tuning = tuning
        self._open = AsyncExitStack()
        self._arm: Arm | None = None
        self._server: RunningServer | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.end()

    async def end(self) -> None:
        self._arm = self._server = None
        await self._open.aclose()

    async def of(self, arm: Arm) -> RunningServer:
        """Return a server of the arm. Raises `DidNotServe`, `BadFlags` or `OSError`."""
        if self._arm == arm and self._server is not None:
            return self._server
        await self.end()
        trial = await make_vllm_trial(
            _launch(self._tuning, arm),
            self._tuning.logs / "engine.log",
            self._tuning.start_limit_s,
            CpuOptions(),
        )
        self._server = await self._open.enter_async_context(serving(trial))
        self._arm = arm
        return self._server


def _launch(tuning: TuneRun, arm: Arm) -> EngineLaunch:
    flags = (*tuning.base, *flags_of(tuning.space, arm))
    return EngineLaunch(
        tuning.environment, tuning.model, NAME, tuning.flavour, flags=flags, drain_s=DRAIN_S
    )


async def _try_arm(
    tuning: TuneRun,
    ask: TrialRequest,
    done: Mapping[str, Mapping[str, Any]],
    servers: _Servers,
    loads: Sequence[int] = (),
) -> dict[str, Any]:
    """Return an arm's log entry: its result, at `loads` if given, or its failure."""
    began = time.monotonic()
    entry: dict[str, Any] = {"flags": _launch(tuning, ask.arm).flags}
    try:
        server = await servers.of(ask.arm)
        entry["start_s"] = round(server.start_s, 1)
        steps = search_each(loads) if loads else _steps(tuning, ask, done)
        entry |= await _measure_arm(tuning, ask.level, server, steps)
    except (DidNotServe, BackendError, BadFlags, OSError) as error:
        await servers.end()  # the next trial gets a fresh server
        entry["failed"] = str(error)[:600]
    return entry | {"seconds": round(time.monotonic() - began, 1)}


async def _measure_arm(
    tuning: TuneRun, level: int, server: RunningServer, steps: Generator[int, LoadPoint, LoadSearch]
) -> dict[str, Any]:
    goal = tuning.goal
    figures: dict[int, float] = {}
    async with meter(server, tuning.shape, goal.promise) as of:
        await _warm(of, tuning)
        load = next(steps)
        while True:
            point = await _at(of, tuning, load, level)
            figures[load] = goal.figure(point)
            seen = LoadPoint(load, point.rates.output_tokens, goal.is_met(point))
            try:
                load = steps.send(seen)
            except StopIteration as end:
                ascent: LoadSearch = end.value
                break
    best = ascent.best
    found: dict[str, Any] = {
        "seen": [[event.load, round(event.tokens_s, 2), event.good] for event in ascent.seen],
        "stopped": ascent.stopped,
    }
    if best is None:
        return found | {"failed": "the promise was kept at no load"}
    figure = figures[best.load]
    return found | {"at_once": best.load, "figure": figure, "score": goal.score(figure)}


def _steps(
    tuning: TuneRun, ask: TrialRequest, done: Mapping[str, Mapping[str, Any]]
) -> Generator[int, LoadPoint, LoadSearch]:
    """Return the load search of one trial: a single load, or a search for the best one."""
    if not tuning.goal.by_load:
        return _only(tuning.first)
    looks = _entries_of(done, ask.arm)
    own: Mapping[str, Any] = next((look for look in reversed(looks) if "at_once" in look), {})
    rival = {} if ask.rival is None else done.get(TrialRequest(ask.rival, ask.level).key, {})
    first = own.get("at_once") or rival.get("at_once") or tuning.first
    before = [seen for look in looks for seen in _points_of(look)] if own else []
    return search_upwards(int(first), _points_of(rival), before=before)


def _entries_of(done: Mapping[str, Mapping[str, Any]], arm: Arm) -> list[Mapping[str, Any]]:
    """Return all log entries of an arm, in the order of their trials."""
    name = " | ".join(arm)
    return [entry for key, entry in done.items() if key.rpartition(" @ ")[0] == name]


def _points_of(entry: Mapping[str, Any]) -> list[LoadPoint]:
    return [LoadPoint(*item) for item in entry.get("seen", ())]


def _only(load: int) -> Generator[int, LoadPoint, LoadSearch]:
    """Yield one load. Return its result as good: the SLO does not matter."""
    seen = yield load
    return LoadSearch((LoadPoint(seen.load, seen.tokens_s, good=True),))


async def _warm(of: TrialMeter, tuning: TuneRun) -> None:
    short = PromptShape(tuning.shape.prompt, min(8, tuning.shape.output), tuning.shape.shared)
    await of.run(closed_load(tuning.first, tuning.first, short))


async def _at(of: TrialMeter, tuning: TuneRun, load: int, level: int) -> RunSummary:
    times = _OF_LEVEL[min(level, len(_OF_LEVEL) - 1)]
    count = max(_LEAST * (1 + level), round(times * load))
    spread_s = min(_SPREAD_S, load / 64) if load > 1 else 0.0
    return await of.point(closed_load(load, count, tuning.shape, spread_s=spread_s))
