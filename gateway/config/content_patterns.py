"""Regular expressions for Hyperscan, which takes time linear in the text."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import hyperscan


_WORD: Final = r"0-9A-Za-z_\x{80}-\x{10ffff}"
# An escape, a class, a group with its options, a repetition, or one character.
_PIECE: Final = re.compile(
    r"\\[pPx]\{[^}]*\}|\\[\s\S]|\[\^?\]?(?:\\[\s\S]|\[:\w+:\]|[^\]\\])*\]|\(\?[a-zA-Z^-]*[:)]?|"
    r"\{\d*,?\d*\}|[\s\S]"
)
_REPEATED: Final = re.compile(r"[+*?)]|\{\d*,?\d*\}")
_OPENED: Final = re.compile(r"\(|\(\?[a-zA-Z^-]*[:)]?")


class PatternError(ValueError):
    """Error: the engine does not accept the pattern; the text says why."""


def compile_signs(patterns: Sequence[str]) -> "hyperscan.Database":
    """Return a database that reports where patterns end in Latin-1 text."""
    return _compile([pattern.encode("latin-1") for pattern in patterns], [0] * len(patterns))


def compile_patterns(patterns: Sequence[str]) -> "hyperscan.Database":
    """Return a database that reports where an operator's patterns start and end in UTF-8.

    Scan it with lists of buffers: with a single block and start offsets, the engine reads beyond
    its memory in long runs of letters, and the process crashes. The engine has no Unicode word
    boundaries, and Unicode word classes are too large for long repeats: then ASCII classes are
    used, and all other letters count as word characters. Raises `PatternError`.
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
    """Return a pattern with ASCII word boundaries; other letters count as word characters.

    A word boundary next to a possible non-ASCII letter is dropped, so the pattern matches more,
    never less.
    """
    pieces = _PIECE.findall(pattern)
    made = []
    for number, piece in enumerate(pieces):
        beside = (_before(pieces[:number]), _behind(pieces[number + 1 :]))
        if piece != r"\b" or not any(map(_may_be_other, beside)):
            made.append(_widened(piece))
    return "".join(made)


def _widened(piece: str) -> str:
    """Return a piece whose word characters include all non-ASCII letters."""
    if piece.startswith("["):
        return piece.replace(r"\w", _WORD)
    return {r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}.get(piece, piece)


def _before(pieces: Sequence[str]) -> str:
    """Return the last element that these pieces must match, if one piece determines it."""
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
