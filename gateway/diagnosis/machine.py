"""Checks of machine and installation: Python, packages, cores, limits, direct I/O."""

import os
import platform
import resource
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import InvalidRequirement, Requirement

from gateway.diagnosis.observation import DoctorFinding, failed, fine, noted, warned

PYTHONS = ((3, 11), (3, 14))  # oldest and newest tested versions
FILES_PER_REQUEST = 3  # client connection, target connection, and a margin
SQLITE_LEAST = (3, 38, 0)  # has the JSON functions that the ledger uses
NAME = "breakeven"


def look_at_machine(max_in_flight: int, workers: int) -> Iterator[DoctorFinding]:
    """Yield the findings for `max_in_flight` open requests in each of `workers`."""
    yield _python(sys.version_info[:2])
    yield from _packages()
    yield _sqlite(sqlite3.sqlite_version_info)
    yield _cores(os.cpu_count() or 1, workers)
    yield _files(resource.getrlimit(resource.RLIMIT_NOFILE)[1], max_in_flight)
    yield _direct_writes()


def _python(found: tuple[int, int]) -> DoctorFinding:
    words = f"{platform.python_implementation()} {platform.python_version()} on {sys.platform}"
    least, newest = PYTHONS
    if not sys.platform.startswith("linux"):
        return failed("python", words, "run the gateway on Linux")
    if least <= found <= newest:
        return fine("python", words)
    fix = f"use Python {least[0]}.{least[1]} to {newest[0]}.{newest[1]}"
    return (failed if found < least else warned)("python", words, fix)


def _packages() -> Iterator[DoctorFinding]:
    """Compare the installed packages with the tested versions."""
    try:
        wanted = requires(NAME) or []
    except PackageNotFoundError:
        yield noted("packages", f"{NAME} runs from its source tree: versions are not compared")
        return
    odd = sorted(filter(None, map(_odd_package, wanted)))
    if odd:
        fix = "install with `--require-hashes` from requirements.lock, in an environment of its own"
        yield warned("packages", "; ".join(odd), fix)
    else:
        yield fine("packages", f"{NAME} {version(NAME)} with the versions it is tested with")


def _odd_package(line: str) -> str | None:
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        return None
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return None
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return f"{wanted.name} is missing"
    fits = wanted.specifier.contains(found, prereleases=True)
    return None if fits else f"{wanted.name} {found} is not {wanted.specifier}"


def _sqlite(found: tuple[int, ...]) -> DoctorFinding:
    words = "SQLite " + ".".join(map(str, found))
    if found >= SQLITE_LEAST:
        return fine("sqlite", words)
    return failed("sqlite", words, "use a Python that is built with SQLite 3.38 or later")


def _cores(cores: int, workers: int) -> DoctorFinding:
    words = f"{cores} cores for {workers} worker{'' if workers == 1 else 's'}"
    if workers > cores:
        fix = f"lower `server.workers` to {cores}: each worker uses one core"
        return warned("cores", words, fix)
    return fine("cores", words)


def _files(limit: int, max_in_flight: int) -> DoctorFinding:
    needed = FILES_PER_REQUEST * max_in_flight
    if limit == resource.RLIM_INFINITY or limit >= needed:
        shown = "no limit" if limit == resource.RLIM_INFINITY else f"{limit}"
        return fine("open files", f"{shown}, for {max_in_flight} open requests a worker")
    fix = f"raise the hard limit (`ulimit -Hn {needed}`, `LimitNOFILE=`), or lower "
    words = f"{limit} for {max_in_flight} open requests a worker, which may need {needed}"
    return warned("open files", words, fix + "`server.max_in_flight`")


def _direct_writes() -> DoctorFinding:
    from ledger.journals.uring import UringWrites  # noqa: PLC0415  (it asks the kernel)

    try:
        UringWrites().close()
    except OSError as error:
        words = f"io_uring is refused ({error.strerror}): a thread writes journals"
        return noted("journal writes", words, "allow io_uring for a shorter tail, if you can")
    return fine("journal writes", "io_uring")
