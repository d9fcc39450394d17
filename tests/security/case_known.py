"""Goals whose tests stand elsewhere, by name; each with the test that plants its fault."""

from suite import proved

ACCESS = "tests/gateway/test_access.py"
KILLERS = "tests/gateway/faults/test_killers.py"

CASES = (
    proved(
        "S1", "cells of routes x roles that are not as declared",
        [ACCESS],
        [f"{ACCESS}::test_the_matrix_sees_a_guard_that_is_missing",
         f"{ACCESS}::test_a_route_without_a_line_stops_the_start"],
    ),
)  # fmt: skip
