"""A text that proves who somebody is, in a holder that says it to nobody who does not ask for it.

No representation has it: not `repr`, `str`, a format, JSON, a pickle, a copy to a plain dict. Who
sends it calls `reveal`, and nobody else has a reason to.
"""

import hmac
from collections.abc import Iterable
from typing import NoReturn, Self

HIDDEN = "***"
LEAST_CHARACTERS = 4  # what is shorter is no secret, and would strike out words


class Secret:
    """Equal by what it holds, in constant time."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("a secret is not written down")


def strike_out(text: str, secrets: Iterable[Secret]) -> str:
    """Return the text without any of them; the longest first, for one may be a part of another."""
    found = {secret.reveal() for secret in secrets}
    for finding in sorted(found, key=len, reverse=True):
        if len(finding) >= LEAST_CHARACTERS:
            text = text.replace(finding, HIDDEN)
    return text
