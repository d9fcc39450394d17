"""Hints that a whole text gives of its numbers, so that most are passed over at once.

A log has thousands of numbers and no word that names one; to look around each takes a hundred times
as long as to look for the words once.
"""

from typing import Final

from gateway.content import national_ids, telephone

_STRONG: Final = frozenset((13, 15, 18))  # digits of numbers that need no word
_AMERICAN: Final = frozenset((10, 11))


class NumberHints:
    """Hints of one text; its words are looked for when the first number asks."""

    __slots__ = ("_named", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._named: bool | None = None

    def may_be_named(self, written: str, digits: int) -> bool:
        """Return whether a number, as it is written, can be one of a person or of a telephone."""
        if digits in _STRONG or written[0] in "+(" or written.startswith("00"):
            return True
        if digits in _AMERICAN and len(written) > digits:
            return True
        if digits == 9 and written.count("-") == 2:
            return True
        if self._named is None:
            lowered = self._text.lower()
            stems = (*national_ids.STEMS, *telephone.STEMS)
            self._named = any(stem in lowered for stem in stems if stem not in _USUAL) or any(
                stem in lowered for stem in _NAMED
            )
        return self._named


# In most texts for other reasons; with these a number is looked at only beside a longer word.
_USUAL: Final = frozenset(("id", "tin", "sin", "ring", "text", "call", "tel", "cell", "nif"))
_NAMED: Final = (
    "id card", "id-card", "id no", "id nr", "id num", "id_no", "id_num", " tin", "tin:", " sin",
    "sin ", "call ", "text ", "ring ", "cell", "tel:", "tel.", "tel ", " nif", "nif ", "identi",
)  # fmt: skip
