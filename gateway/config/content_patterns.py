"""Regular expressions for the engine that takes time in proportion to the text alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import hyperscan


class PatternError(ValueError):
    """A pattern that the engine does not take; the text says why."""


def compile_signs(patterns: Sequence[str]) -> "hyperscan.Database":
    """Return a database that tells where patterns end in Latin-1."""
    return _compile([pattern.encode("latin-1") for pattern in patterns], 0)


def compile_patterns(patterns: Sequence[str]) -> "hyperscan.Database":
    """Return a database that tells where an operator's patterns begin and end in UTF-8.

    It is scanned with lists of buffers: where one block is scanned for where a match begins, the
    engine reads beyond memory in long runs of letters, and the process dies. Raises `PatternError`.
    """
    import hyperscan  # noqa: PLC0415  (3 MB that only installations with detectors need)

    flags = hyperscan.HS_FLAG_SOM_LEFTMOST | hyperscan.HS_FLAG_UTF8 | hyperscan.HS_FLAG_UCP
    return _compile([pattern.encode() for pattern in patterns], flags, hyperscan.HS_MODE_VECTORED)


def _compile(
    patterns: Sequence[bytes], flags: int, mode: int | None = None
) -> "hyperscan.Database":
    import hyperscan  # noqa: PLC0415  (as above)

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK if mode is None else mode)
    try:
        database.compile(
            expressions=patterns,
            ids=list(range(len(patterns))),
            elements=len(patterns),
            flags=[flags] * len(patterns),
        )
    except hyperscan.error as error:
        raise PatternError(str(error)) from error
    return database
