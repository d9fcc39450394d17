"""The page of errors has every kind, and each has its advice."""

from deploy.docsite.errors_page import ADVICE, FAULTS, text
from gateway.errors import TABLE, ErrorFault


def test_every_error_has_its_advice_and_no_other() -> None:
    assert ADVICE.keys() == TABLE.keys()
    assert FAULTS.keys() == set(ErrorFault)


def test_every_code_is_on_the_page() -> None:
    lines = text().splitlines()
    for kind, spec in TABLE.items():
        (line,) = [line for line in lines if line.endswith(f"| {ADVICE[kind]} |")]
        assert line.startswith(f"| {spec.status} | `{spec.code or 'null'}` | `{spec.type}` |")
        assert f"`{spec.fault.value}`" in line
