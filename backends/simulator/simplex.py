"""Minimisation by the simplex of Nelder and Mead (1965), with the standard library only."""

from collections.abc import Callable, Sequence

Vector = tuple[float, ...]
Cost = Callable[[Vector], float]


def nelder_mead(cost: Cost, start: Vector, *, evaluations: int, spread: float = 0.4) -> Vector:
    """Return the best point after reflecting, stretching and shrinking a simplex.

    `evaluations` limits the calls of `cost`; `spread` is the size of the first simplex.
    """
    corners = [start] + [
        tuple(value + spread * (i == axis) for i, value in enumerate(start))
        for axis in range(len(start))
    ]
    simplex = sorted((cost(corner), corner) for corner in corners)
    spent = len(simplex)
    while spent < evaluations and simplex[-1][0] - simplex[0][0] > 1e-9:
        worst_cost, worst = simplex[-1]
        centre = _mean([corner for _, corner in simplex[:-1]])
        reflected = _along(centre, worst, -1.0)
        best = (cost(reflected), reflected)
        spent += 1
        if best[0] < simplex[0][0]:
            further = _along(centre, worst, -2.0)
            best = min(best, (cost(further), further))
            spent += 1
        elif best[0] >= simplex[-2][0]:
            nearer = _along(centre, worst, 0.5 if best[0] >= worst_cost else -0.5)
            best = min(best, (cost(nearer), nearer))
            spent += 1
        if best[0] < worst_cost:
            simplex[-1] = best
        else:
            anchor = simplex[0][1]
            shrunk = [_along(anchor, corner, 0.5) for _, corner in simplex[1:]]
            simplex[1:] = [(cost(corner), corner) for corner in shrunk]
            spent += len(shrunk)
        simplex.sort()
    return simplex[0][1]


def _mean(points: Sequence[Vector]) -> Vector:
    return tuple(sum(values) / len(points) for values in zip(*points, strict=True))


def _along(origin: Vector, point: Vector, factor: float) -> Vector:
    """Return the point at `factor` times the way from `origin` to `point`."""
    return tuple(o + factor * (p - o) for o, p in zip(origin, point, strict=True))
