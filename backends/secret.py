"""A holder of a secret text that reveals it only on explicit request.

No representation contains it: not `repr`, `str`, a format, JSON, a pickle, or a copy to a dict.
Only code that sends it calls `reveal`.
"""

import hmac
from collections.abc import Iterable
from typing import NoReturn, Self

HIDDEN = "***"
LEAST_CHARACTERS = 4  # shorter texts are not secrets, and would remove words


class Secret:
    """A secret text; equality compares the texts in constant time."""

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
        raise TypeError("a secret cannot be serialized")


def strike_out(text: str, secrets: Iterable[Secret]) -> str:
    """Return the text without any of the secrets, longest first as one may contain another."""
    found = {secret.reveal() for secret in secrets}
    for finding in sorted(found, key=len, reverse=True):
        if len(finding) >= LEAST_CHARACTERS:
            text = text.replace(finding, HIDDEN)
    return text
