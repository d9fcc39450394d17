"""What a clairvoyant would pay the APIs for coding agents' sessions: a linear program.

Each session is a flow through its turns. A turn runs at one target, whose cache has the prompt of
this session's last turn there, if that was one, two or three turns ago and the provider keeps it
for so long. Own engines have so many seconds in each window, in which a turn costs what it reads
and decodes at the least, and keep so many tokens of beginnings between turns. Everything else that
makes scheduling hard is relaxed: promises, steps, queues, when a beginning is evicted. Run by
`bench_agentic` in an environment of its own: `python agentic_bound.py < problem.json`.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from programs import solve_program

INFINITE = 1e30
COLD = 4  # turns ago, or more: nothing of it is left


@dataclass(frozen=True)
class Program:
    """Sessions as turns of (arrival s, prompt tokens, output tokens).

    `apis`: dollars per token (plain, cached, written, output), seconds that a prompt is kept, least
    tokens and step of what is read. `step`: a, b, c, d of the engines, in seconds.
    """

    sessions: list[list[tuple[float, int, int]]]
    apis: list[tuple[float, float, float, float, float, int, int]]
    step: tuple[float, float, float, float]
    engines: int
    kv_tokens: int
    budget: int
    window_s: float
    time_share: float = 1.0  # of the engines' seconds that may be used


@dataclass(frozen=True)
class Clairvoyant:
    dollars: float
    own_share: float  # of the turns
    targets: list[list[int]]  # of each session's turns, where most of each runs
    columns: int
    seconds: float
    status: str


Place = tuple[int, int]  # a session and its turn
State = tuple[int, ...]  # turns since each target was last asked, the one of this turn at 1


class _Columns:
    def __init__(self) -> None:
        self.cost: list[float] = []
        self.turns: list[tuple[int, int, int]] = []  # session, turn, target
        self.entries: list[tuple[int, int, float]] = []  # row, column, value
        self.equal: list[float] = []  # of the flow rows, from 0 on
        self.windows: dict[tuple[str, int], int] = {}
        self.limits: list[float] = []

    def add(self, cost: float, place: Place, target: int) -> int:
        self.cost.append(cost)
        self.turns.append((*place, target))
        return len(self.cost) - 1

    def flow(self, value: float) -> int:
        self.equal.append(value)
        return len(self.equal) - 1

    def limit(self, kind: str, place: int, most: float) -> int:
        """Return the row of a window, counted down from -1."""
        row = self.windows.get((kind, place))
        if row is None:
            self.limits.append(most)
            row = self.windows[kind, place] = -len(self.limits)
        return row


def _api_cost(api: tuple[float, ...], prompt: int, output: int, known: int) -> float:
    plain, cached, written, answer, _, least, step = api
    read = 0 if known < least else known - known % int(step)
    rest = prompt - read
    return read * cached + rest * (written or plain) + output * answer


def _session(program: Program, columns: _Columns, session: int) -> None:
    turns = program.sessions[session]
    targets = len(program.apis) + 1  # the engines are the last
    begin: State = (COLD,) * targets
    states: dict[State, int] = {begin: columns.flow(-1.0)}  # what leaves it, less what comes
    for number, turn in enumerate(turns):
        following: dict[State, int] = {}
        for state, row in states.items():
            for target in range(targets):
                ago = state[target]
                before = turns[number - ago] if ago < COLD else None
                for column in _ways(program, columns, (session, number), target, before, turn):
                    columns.entries.append((row, column, -1.0))
                    then = tuple(
                        1 if place == target else min(COLD, since + 1)
                        for place, since in enumerate(state)
                    )
                    if number + 1 < len(turns):
                        if then not in following:
                            following[then] = columns.flow(0.0)
                        columns.entries.append((following[then], column, 1.0))
        states = following


def _ways(
    program: Program,
    columns: _Columns,
    named: Place,
    target: int,
    before: tuple[float, int, int] | None,
    turn: tuple[float, int, int],
) -> list[int]:
    at_s, prompt, output = turn
    if target < len(program.apis):
        api = program.apis[target]
        known = before[1] if before is not None and at_s - before[0] <= api[4] else 0
        return [columns.add(_api_cost(api, prompt, output, known), named, target)]
    a, b, c, d = program.step
    decode_s = output * (b + c * (prompt + 0.5 * output))
    token_s = d + a / program.budget
    found = [columns.add(0.0, named, target)]
    _use(program, columns, found[0], at_s, decode_s + prompt * token_s)
    if before is not None:
        fresh = max(1, prompt - before[1])
        warm = columns.add(0.0, named, target)
        _use(program, columns, warm, at_s, decode_s + fresh * token_s)
        place = int(before[0] / program.window_s)
        while place * program.window_s < at_s:
            begins, ends = place * program.window_s, (place + 1) * program.window_s
            share = (min(at_s, ends) - max(before[0], begins)) / program.window_s
            kept = columns.limit("kept", place, float(program.engines * program.kv_tokens))
            columns.entries.append((kept, warm, share * before[1]))
            place += 1
        found.append(warm)
    return found


def _use(program: Program, columns: _Columns, column: int, at_s: float, seconds: float) -> None:
    most = program.time_share * program.engines * program.window_s
    row = columns.limit("time", int(at_s / program.window_s), most)
    columns.entries.append((row, column, seconds))


def solve(program: Program) -> Clairvoyant:
    import highspy  # noqa: PLC0415  (in the bound's own environment only)
    import numpy as np  # noqa: PLC0415  (as above)

    columns = _Columns()
    for session in range(len(program.sessions)):
        _session(program, columns, session)
    flows, count = len(columns.equal), len(columns.cost)
    summed: dict[tuple[int, int], float] = defaultdict(float)
    for row, column, value in columns.entries:
        summed[column, row if row >= 0 else flows - row - 1] += value
    order = sorted(summed)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = count, flows + len(columns.limits)
    model.col_cost_ = np.array(columns.cost)
    model.col_lower_, model.col_upper_ = np.zeros(count), np.ones(count)
    lower = columns.equal + [-INFINITE] * len(columns.limits)
    model.row_lower_ = np.array(lower)
    model.row_upper_ = np.array(columns.equal + columns.limits)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    counts = np.bincount([column for column, _ in order], minlength=count)
    model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(counts)))
    model.a_matrix_.index_ = np.array([row for _, row in order])
    model.a_matrix_.value_ = np.array([summed[entry] for entry in order])
    solver = solve_program(model)
    shares = np.array(solver.getSolution().col_value)
    targets = _rounded(program, columns, shares)
    own = sum(target == len(program.apis) for turns in targets for target in turns)
    return Clairvoyant(
        float(shares @ np.array(columns.cost)), own / sum(map(len, targets)), targets, count,
        solver.getRunTime(), solver.modelStatusToString(solver.getModelStatus()),
    )  # fmt: skip


def _rounded(program: Program, columns: _Columns, shares: Iterable[float]) -> list[list[int]]:
    """Each turn's target: the engines where half of it runs there, else the API with most."""
    own = len(program.apis)
    sums = [[[0.0] * (own + 1) for _ in turns] for turns in program.sessions]
    for (session, turn, target), share in zip(columns.turns, shares, strict=True):
        sums[session][turn][target] += float(share)
    return [
        [own if turn[own] >= 0.5 else max(range(own), key=turn.__getitem__) for turn in turns]
        for turns in sums
    ]


def main() -> int:
    json.dump(asdict(solve(Program(**json.load(sys.stdin)))), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
