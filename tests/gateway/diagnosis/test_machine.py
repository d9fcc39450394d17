"""What is looked at on a machine, each with a machine that lacks it."""

import resource

import pytest

from gateway.diagnosis import machine
from gateway.diagnosis.machine import look_at_machine
from gateway.diagnosis.observation import DoctorVerdict
from ledger.journals.uring import UringWrites

OK, WARNING, ERROR = DoctorVerdict.OK, DoctorVerdict.WARNING, DoctorVerdict.ERROR


def test_this_machine_has_what_the_suite_needs() -> None:
    found = {finding.subject: finding for finding in look_at_machine(100, 1)}
    assert set(found) == {"python", "packages", "sqlite", "cores", "open files", "journal writes"}
    assert not [finding for finding in found.values() if finding.verdict is ERROR]


@pytest.mark.parametrize(
    ("version", "verdict"),
    [((3, 10), ERROR), ((3, 11), OK), ((3, 14), OK), ((3, 15), WARNING)],
)
def test_pythons_that_are_tested(version, verdict) -> None:
    assert machine._python(version).verdict is verdict


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("httpx==0.0.1", "is not ==0.0.1"),
        ("no-such-package-anywhere==1", "is missing"),
        ("httpx>=0.1", None),
        ("no-such-package-anywhere==1; extra == 'dashboard'", None),
    ],
)
def test_packages_of_other_versions_are_named(line, words) -> None:
    found = machine._odd_package(line)
    assert (found is None) if words is None else (words in found)


def test_odd_packages_are_a_warning_with_what_to_do(monkeypatch) -> None:
    monkeypatch.setattr(machine, "requires", lambda _: ["httpx==0.0.1"])
    monkeypatch.setattr(machine, "version", lambda _: "1")
    (found,) = machine._packages()
    assert found.verdict is WARNING
    assert "httpx 1 is not ==0.0.1" in found.words
    assert "requirements.lock" in found.fix


def test_limits_that_bind_are_warnings() -> None:
    assert machine._cores(2, 4).verdict is WARNING
    assert machine._cores(4, 4).verdict is OK
    assert machine._files(300, 100).verdict is OK
    assert machine._files(299, 100).verdict is WARNING
    assert machine._files(resource.RLIM_INFINITY, 10**6).verdict is OK
    assert machine._sqlite((3, 37, 2)).verdict is ERROR


def test_a_kernel_that_refuses_is_told_and_no_fault(monkeypatch) -> None:
    def refuse(_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(UringWrites, "__init__", refuse)
    found = machine._direct_writes()
    assert found.verdict is DoctorVerdict.NOTE
    assert "Operation not permitted" in found.words
