"""Solves linear programs by HiGHS, in the environment of the bounds alone."""

from typing import Any


def solve_program(model: Any) -> Any:
    """Return the solver that has run: on one thread by its interior points, as they came out."""
    import highspy  # noqa: PLC0415  (in the bounds' own environment only)

    solver = highspy.Highs()
    for name, value in (
        ("output_flag", False), ("solver", "hipo"), ("run_crossover", "off"), ("threads", 1),
        ("kkt_tolerance", 1e-5),
    ):  # fmt: skip
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    return solver
