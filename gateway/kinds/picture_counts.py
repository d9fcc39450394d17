"""Vendors' members for the number and form of pictures.

The hold covers `n` pictures, and the dearest form if two are stated. OpenAI-compatible servers
accept others beside or in place of `n`: SiliconFlow's `batch_size`, Ark's picture sequences, and
members of Diffusers, Replicate, Stability and Imagen.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gateway.errors import RequestError
from gateway.kinds.request_checks import CHOICES

_MARKS: Final = str.maketrans("", "", "_- ")


def _spelled(name: str) -> str:
    return name.translate(_MARKS).casefold()


_COUNTS: Final = frozenset((
    *map(_spelled, CHOICES), "batch", "batchcount", "batchsize", "imagecount", "imagenum",
    "maximages", "niter", "num", "numimages", "numimagesperprompt", "numoutputs",
    "numberofimages", "numberofresults", "samplecount", "samples", "sequentialimagegeneration",
))  # fmt: skip
# Other members for a picture's form; which one counts is unknown.
_FORMS: Final = frozenset((
    "aspectratio", "height", "imagequality", "imageresolution", "imagesize", "megapixels",
    "outputresolution", "outputsize", "resolution", "width",
))  # fmt: skip
_ONE: Final = (None, 1, "1", "", False, "disabled")


def refuse_other_counts(members: Iterable[tuple[str, bytes]]) -> None:
    """Raise `RequestError` for a member, or a nested one, that asks for more than `n`."""
    for name, raw in members:
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = raw.decode(errors="replace")  # a form field is text
        opened: list[tuple[str, Any]] = [(_spelled(name), value)]
        while opened:
            word, inner = opened.pop()
            if word in _COUNTS and inner not in _ONE:
                words = f"`{name}` is not taken: it is not what is held for. Send `n`."
                raise RequestError("unsupported", words, param=name)
            if isinstance(inner, dict):
                inside = {_spelled(key): said for key, said in inner.items()}
                opened += [("num" if key == "n" else key, said) for key, said in inside.items()]
            elif isinstance(inner, list):
                opened += [("", item) for item in inner]


def stated_form(names: Iterable[str], quality: str, size: str) -> tuple[str, str]:
    """Return quality and size, both left open if another member may state the form."""
    if any(_spelled(name) in _FORMS for name in names):
        return "", ""
    return quality, size
