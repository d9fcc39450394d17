"""Regular expressions for the engine that takes time in proportion to the text alone."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import hyperscan


_WORD: Final = r"0-9A-Za-z_\x{80}-\x{10ffff}"
# An escape, a class, a bracket with its options, a repetition, or one character.
_PIECE: Final = re.compile(
    r"\\[pPx]\{[^}]*\}|\\[\s\S]|\[\^?\]?(?:\\[\s\S]|\[:\w+:\]|[^\]\\])*\]|\(\?[a-zA-Z^-]*[:)]?|"
    r"\{\d*,?\d*\}|[\s\S]"
)
_REPEATED: Final = re.compile(r"[+*?)]|\{\d*,?\d*\}")
_OPENED: Final = re.compile(r"\(|\(\?[a-zA-Z^-]*[:)]?")


class PatternError(ValueError):
    """A pattern that the engine does not take; the text says why."""


def compile_signs(patterns: Sequence[str]) -> "hyperscan.Database":
    """Return a database that tells where patterns end in Latin-1."""
    return _compile([pattern.encode("latin-1") for pattern in patterns], [0] * len(patterns))


def compile_patterns(patterns: Sequence[str]) -> "hyperscan.Database":
    """Return a database that tells where an operator's patterns begin and end in UTF-8.

    It is scanned with lists of buffers: where one block is scanned for where a match begins, the
    engine reads beyond memory in long runs of letters, and the process dies. The engine knows no
    ends of words by Unicode, and long words by Unicode are too large for it: where it takes a
    pattern with ASCII's words alone, all other letters count as parts of words.
    Raises `PatternError`.
    """
    import hyperscan  # noqa: PLC0415  (3 MB that only installations with detectors need)

    plain = hyperscan.HS_FLAG_SOM_LEFTMOST | hyperscan.HS_FLAG_UTF8
    unicode, vectored = plain | hyperscan.HS_FLAG_UCP, hyperscan.HS_MODE_VECTORED
    encoded, flags = [], []
    for pattern in patterns:
        try:
            _compile([pattern.encode()], [unicode], vectored)
        except PatternError:
            encoded.append(_in_ascii(pattern).encode())
            flags.append(plain)
            _compile(encoded[-1:], flags[-1:], vectored)
        else:
            encoded.append(pattern.encode())
            flags.append(unicode)
    return _compile(encoded, flags, vectored)


def _in_ascii(pattern: str) -> str:
    """Return a pattern in which letters beyond ASCII are parts of words, whose ends are ASCII's.

    An end of a word beside what may be such a letter is left out: more is found, and nothing less.
    """
    pieces = _PIECE.findall(pattern)
    made = []
    for number, piece in enumerate(pieces):
        beside = (_before(pieces[:number]), _behind(pieces[number + 1 :]))
        if piece != r"\b" or not any(map(_may_be_other, beside)):
            made.append(_widened(piece))
    return "".join(made)


def _widened(piece: str) -> str:
    """Return a piece whose letters of words are also those beyond ASCII."""
    if piece.startswith("["):
        return piece.replace(r"\w", _WORD)
    return {r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}.get(piece, piece)


def _before(pieces: Sequence[str]) -> str:
    """Return what must stand last of what these pieces match, if one piece says so."""
    return next((piece for piece in reversed(pieces) if not _REPEATED.fullmatch(piece)), "")


def _behind(pieces: Sequence[str]) -> str:
    return next((piece for piece in pieces if not _OPENED.fullmatch(piece)), "")


def _may_be_other(piece: str) -> bool:
    """Return whether a piece may match a letter beyond ASCII."""
    return (
        not piece.isascii()
        or piece == "."
        or piece[:2] in (r"\w", r"\p", r"\x", "[^")
        or (piece.startswith("[") and any(mark in piece for mark in (r"\w", r"\p", r"\x")))
    )


def _compile(
    patterns: Sequence[bytes], flags: Sequence[int], mode: int | None = None
) -> "hyperscan.Database":
    import hyperscan  # noqa: PLC0415  (as above)

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK if mode is None else mode)
    try:
        database.compile(
            expressions=patterns,
            ids=list(range(len(patterns))),
            elements=len(patterns),
            flags=flags,
        )
    except hyperscan.error as error:
        raise PatternError(str(error)) from error
    return database
