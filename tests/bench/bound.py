"""The offline bound: what a clairvoyant scheduler of the same engines could earn inside the SLO.

A linear program, relaxed in everything that makes scheduling hard. `x_i` is the share of request i
that is served in time; its prefill may lie only between its arrival and its first token's deadline,
its decoding only between the earliest end of its prefill and the longest residence that the TPOT
allows. Time is cut into windows; in each there are `n_w` steps. Any real schedule of these engines,
its steps split at the edges, is a feasible point worth its dollars, so no policy can earn more.
Run by `bench_routing` in an environment of its own: `python bound.py < problem.json`.
"""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from programs import solve_program

INFINITE = 1e30


@dataclass(frozen=True)
class Problem:
    """Requests as (arrival s, prompt tokens, output tokens, worth in dollars, TTFT s, TPOT s).

    `window_s` for decoding, `fine_s` for prefill (a whole number of them makes a window).
    """

    requests: list[tuple[float, int, int, float, float, float]]
    step: tuple[float, float, float, float, float]  # a, b, c, d, t0
    kv_tokens: int
    sequences: int
    budget: int
    engines: int
    window_s: float
    fine_s: float


@dataclass(frozen=True)
class Bound:
    dollars: float
    excluded: int  # requests that cannot keep their promise on an empty engine
    fractional: float  # share of requests that the optimum serves in part
    rows: int
    columns: int
    seconds: float
    status: str
    shares: list[float]  # of each request, as far as it is served


class _Matrix:
    """Rows and columns of the program, by triplets."""

    def __init__(self) -> None:
        self.worth: list[float] = []
        self.most: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.places: list[int] = []
        self.columns: list[int] = []
        self.values: list[float] = []

    def column(self, worth: float = 0.0, most: float = INFINITE) -> int:
        self.worth.append(worth)
        self.most.append(most)
        return len(self.worth) - 1

    def row(self, lower: float, upper: float) -> int:
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def put(self, row: int, column: int, value: float) -> None:
        self.places.append(row)
        self.columns.append(column)
        self.values.append(value)


class _Windows:
    """Capacity rows, made when something is first placed in their window."""

    def __init__(self, matrix: _Matrix, problem: Problem) -> None:
        self._matrix, self._problem = matrix, problem
        self._coarse: dict[int, tuple[int, int, int, int]] = {}
        self._fine: dict[int, int] = {}

    def coarse(self, place: int) -> tuple[int, int, int, int]:
        """Rows of a window: its time, cached tokens, sequences, tokens."""
        rows = self._coarse.get(place)
        if rows is None:
            matrix, problem = self._matrix, self._problem
            steps = matrix.column(0.0, problem.engines * problem.window_s / problem.step[0])
            rows = (
                matrix.row(-INFINITE, problem.engines * problem.window_s),
                *(matrix.row(-INFINITE, 0.0) for _ in range(3)),
            )
            self._coarse[place] = rows
            for row, value in zip(rows, (problem.step[0], -1.0, -1.0, -1.0), strict=True):
                matrix.put(row, steps, value)
        return rows

    def fine(self, place: int) -> int:
        row = self._fine.get(place)
        if row is None:
            problem = self._problem
            row = self._matrix.row(-INFINITE, problem.engines * problem.fine_s)
            self._fine[place] = row
        return row


def _place(problem: Problem, matrix: _Matrix, windows: _Windows, request: tuple[float, ...]) -> int:
    """One request's columns; returns that of its share, or -1 when no engine can serve it."""
    at_s, prompt, output, worth, ttft_s, tpot_s = request
    a, b, c, d, t0 = problem.step
    chunks = math.ceil(prompt / problem.budget)
    alone_s = a * chunks + d * prompt
    if t0 + alone_s > ttft_s or prompt + output > problem.kv_tokens:
        return -1
    share = matrix.column(worth, 1.0)
    whole = matrix.row(0.0, 0.0)
    matrix.put(whole, share, -1.0)
    ratio = round(problem.window_s / problem.fine_s)
    seen_s, due_s = at_s + t0, at_s + ttft_s
    token_s = d + a / problem.budget  # every step that it fills costs its constant, too
    for place, lasts_s in _overlaps(seen_s, due_s, problem.fine_s):
        part = matrix.column(0.0, min(1.0, lasts_s / (token_s * prompt)))
        matrix.put(whole, part, 1.0)
        time, _, _, tokens = windows.coarse(place // ratio)
        matrix.put(time, part, d * prompt)
        matrix.put(tokens, part, prompt / problem.budget)
        matrix.put(windows.fine(place), part, token_s * prompt)
    steps = output - 1
    if steps > 0:
        context = steps * prompt + 0.5 * output * steps
        decoded = matrix.row(0.0, 0.0)
        matrix.put(decoded, share, -1.0)
        span_s = steps * (a + b + c * prompt)  # alone
        for place, lasts_s in _overlaps(seen_s + alone_s, due_s + steps * tpot_s, problem.window_s):
            part = matrix.column(0.0, min(1.0, lasts_s / span_s))
            matrix.put(decoded, part, 1.0)
            time, cached, sequences, tokens = windows.coarse(place)
            matrix.put(time, part, b * steps + c * context)
            matrix.put(cached, part, context / problem.kv_tokens)
            matrix.put(sequences, part, steps / problem.sequences)
            matrix.put(tokens, part, steps / problem.budget)
    return share


def _overlaps(begin_s: float, end_s: float, window_s: float) -> Iterator[tuple[int, float]]:
    """The windows that a span touches, each with the seconds that it lies in it.

    One request is computed in one place at a time, so no more of it fits into a window.
    """
    place = int(begin_s / window_s)
    while place * window_s < end_s:
        yield place, min(end_s, (place + 1) * window_s) - max(begin_s, place * window_s)
        place += 1


def solve(problem: Problem) -> Bound:
    """The bound in dollars, proved by weak duality from whatever prices the solver found.

    For any prices `y >= 0` of the capacity rows, and any of the equalities, no point of the
    program is worth more than `y b + sum_j max(0, c_j - y A_j) u_j`; so what the solver leaves
    unconverged makes the bound looser, never wrong.
    """
    import highspy  # noqa: PLC0415  (in the bound's own environment only)
    import numpy as np  # noqa: PLC0415  (as above)

    matrix = _Matrix()
    windows = _Windows(matrix, problem)
    shares = [_place(problem, matrix, windows, request) for request in problem.requests]
    served = [share for share in shares if share >= 0]
    rows, columns = len(matrix.lower), len(matrix.worth)
    if not served:
        return Bound(0.0, len(shares), 0.0, rows, columns, 0.0, "Empty", [0.0] * len(shares))
    places, owners = np.array(matrix.places), np.array(matrix.columns)
    values, most = np.array(matrix.values), np.array(matrix.most)
    scale = max(matrix.worth)
    worth = np.array(matrix.worth) / scale
    order = np.lexsort((places, owners))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, rows
    model.col_cost_, model.col_lower_, model.col_upper_ = worth, np.zeros(columns), most
    model.row_lower_, model.row_upper_ = np.array(matrix.lower), np.array(matrix.upper)
    model.sense_ = highspy.ObjSense.kMaximize
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    counts = np.bincount(owners, minlength=columns)
    model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(counts)))
    model.a_matrix_.index_, model.a_matrix_.value_ = places[order], values[order]
    solver = solve_program(model)
    solution = solver.getSolution()
    prices = np.array(solution.row_dual)
    capacity = np.array(matrix.lower) <= -INFINITE
    best = math.inf
    for signed in (prices, -prices):  # whichever sign the solver's convention has
        price = np.where(capacity, np.maximum(signed, 0.0), signed)
        left = worth - np.bincount(owners, weights=price[places] * values, minlength=columns)
        proved = float(price @ np.array(matrix.upper) + np.maximum(left, 0.0) @ most)
        best = min(best, proved)
    shares_found = np.array(solution.col_value)[served]
    fractional = float(np.mean((shares_found > 0.001) & (shares_found < 0.999)))
    found = iter(shares_found)
    told = [round(float(next(found)), 4) if share >= 0 else 0.0 for share in shares]
    status = solver.modelStatusToString(solver.getModelStatus())
    return Bound(
        best * scale, len(shares) - len(served), fractional, rows, columns,
        solver.getRunTime(), status, told,
    )  # fmt: skip


def main() -> int:
    given = json.load(sys.stdin)
    json.dump(asdict(solve(Problem(**given))), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
