"""One assertion for all tests that look for faults: a failure names every one, a line each."""

from collections.abc import Iterable


def assert_none(findings: Iterable[object], fix: str = "") -> None:
    """Raises `AssertionError` with all findings; pytest shortens a comparison with `[]`.

    `fix` is what to do about them, where they do not say it themselves.
    """
    __tracebackhide__ = True
    found = [str(finding) for finding in findings]
    lines = [f"{len(found)} found:", *found, *([f"Fix: {fix}"] if fix else [])]
    assert not found, "\n".join(lines)
