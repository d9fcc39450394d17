"""Non-negative least squares for a handful of unknowns, with the uncertainty of each.

Coordinate descent on the normal equations: five unknowns need no linear-algebra library.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_SWEEPS = 5000
_CONVERGED = 1e-12


@dataclass(frozen=True, slots=True)
class Solution:
    """Solution of a fit. `deviations` are standard errors, infinite for undetermined unknowns."""

    values: tuple[float, ...]
    deviations: tuple[float, ...]
    residual: float  # root mean square of the (weighted) residuals


def solve(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> Solution:
    """Minimise the norm of rows * values - targets over values >= 0.

    Raises `ValueError` when there is no row, or not one target for each row.
    """
    if not rows or len(rows) != len(targets):
        raise ValueError("one target per row, and at least one row")
    width = len(rows[0])
    # Columns are scaled to length 1: tokens are in thousands, other columns are ones.
    scale = [math.sqrt(sum(row[j] ** 2 for row in rows)) or 1.0 for j in range(width)]
    scaled = [[row[j] / scale[j] for j in range(width)] for row in rows]
    gram = [[sum(row[i] * row[j] for row in scaled) for j in range(width)] for i in range(width)]
    moment = [
        sum(row[j] * target for row, target in zip(scaled, targets, strict=True))
        for j in range(width)
    ]
    values = _descend(gram, moment)
    errors = [
        sum(row[j] * values[j] for j in range(width)) - target
        for row, target in zip(scaled, targets, strict=True)
    ]
    square = sum(error**2 for error in errors)
    variance = square / max(1, len(rows) - width)
    spread = _inverse_diagonal(gram)
    return Solution(
        tuple(value / size for value, size in zip(values, scale, strict=True)),
        tuple(
            math.sqrt(variance * part) / size if math.isfinite(part) else math.inf
            for part, size in zip(spread, scale, strict=True)
        ),
        math.sqrt(square / len(rows)),
    )


def _descend(gram: Sequence[Sequence[float]], moment: Sequence[float]) -> list[float]:
    width = len(moment)
    values = [0.0] * width
    for _ in range(_SWEEPS):
        moved = 0.0
        for j in range(width):
            if gram[j][j] <= 0.0:
                continue
            slope = moment[j] - sum(gram[j][k] * values[k] for k in range(width))
            best = max(0.0, values[j] + slope / gram[j][j])
            moved = max(moved, abs(best - values[j]))
            values[j] = best
        if moved < _CONVERGED:
            break
    return values


def _inverse_diagonal(gram: Sequence[Sequence[float]]) -> list[float]:
    """Return the diagonal of the inverse by Gauss-Jordan; all infinite if it is singular."""
    width = len(gram)
    work = [[*row, *(float(i == j) for j in range(width))] for i, row in enumerate(gram)]
    singular: set[int] = set()
    for column in range(width):
        pivot = max(range(column, width), key=lambda row: abs(work[row][column]))
        if abs(work[pivot][column]) < 1e-10:
            singular.add(column)
            continue
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        work[column] = [value / head for value in work[column]]
        for row in range(width):
            if row != column and work[row][column] != 0.0:
                factor = work[row][column]
                work[row] = [
                    value - factor * lead
                    for value, lead in zip(work[row], work[column], strict=True)
                ]
    if singular:
        return [math.inf] * width
    return [max(0.0, work[j][width + j]) for j in range(width)]
