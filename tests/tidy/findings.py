"""One assertion for all tests that look for faults: a failure names every one, a line each."""

from collections.abc import Iterable


def assert_none(findings: Iterable[object]) -> None:
    """Raises `AssertionError` with all findings; pytest shortens a comparison with `[]`."""
    __tracebackhide__ = True
    found = [str(finding) for finding in findings]
    assert not found, "\n".join([f"{len(found)} found:", *found])
