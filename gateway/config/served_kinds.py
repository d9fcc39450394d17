"""Request kinds that pools and providers may be declared to serve."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from router.request_kinds import KIND_TRAITS, RequestKind

if TYPE_CHECKING:
    ServedKind = str
else:  # any text: type checkers accept no computed list
    ServedKind = Literal[tuple(kind.value for kind in RequestKind)]

ENGINE_DEFAULT: Final = ("chat", "completion", "tokenize")
PROVIDER_DEFAULT: Final = ("chat", "completion", "embedding")  # all wire dialects serve these


def can_engines_serve(kind: str) -> bool:
    return KIND_TRAITS[RequestKind(kind)].engines


def can_apis_serve(kind: str) -> bool:
    return KIND_TRAITS[RequestKind(kind)].apis


def list_other_kinds(default: tuple[str, ...], can_serve: Callable[[str], bool]) -> str:
    """Return the kinds besides the default, for a setting's description."""
    others = (kind for kind in RequestKind if kind not in default and can_serve(kind))
    return ", ".join(f"`{kind}`" for kind in others)
