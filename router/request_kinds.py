"""The kinds of request, and what a decision must know of each.

A further kind is a member of `RequestKind` and an entry of `KIND_TRAITS`. What else is particular
to a kind is in `gateway.kinds`, which the router does not import.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RequestKind(StrEnum):
    """Kind of work that the request asks for; filters and units differ per kind."""

    CHAT = "chat"
    COMPLETION = "completion"
    EMBEDDING = "embedding"
    RERANK = "rerank"
    TRANSCRIPTION = "transcription"
    SCORE = "score"
    MODERATION = "moderation"
    TOKENIZE = "tokenize"
    SPEECH = "speech"
    IMAGE_GENERATION = "image_generation"
    IMAGE_EDIT = "image_edit"


@dataclass(frozen=True, slots=True)
class KindTraits:
    """The facts of a kind that filters and forecasts use.

    `decoded`: the engine decodes the answer token by token for one client, so the request has a
    TPOT and a KV cache that grows. Other answers come at once, or follow from what was heard.
    `engines`, `apis`: whether own engines, and providers, may be declared to serve it.
    """

    decoded: bool
    engines: bool = True
    apis: bool = True


# A plain dict: its lookup costs as little as the test of a set.
KIND_TRAITS: Final[dict[RequestKind, KindTraits]] = {
    RequestKind.CHAT: KindTraits(decoded=True),
    RequestKind.COMPLETION: KindTraits(decoded=True),
    RequestKind.EMBEDDING: KindTraits(decoded=False),
    RequestKind.RERANK: KindTraits(decoded=False),
    RequestKind.TRANSCRIPTION: KindTraits(decoded=False),
    RequestKind.SCORE: KindTraits(decoded=False),
    RequestKind.MODERATION: KindTraits(decoded=False, engines=False),
    RequestKind.TOKENIZE: KindTraits(decoded=False, apis=False),
    RequestKind.SPEECH: KindTraits(decoded=False, engines=False),
    RequestKind.IMAGE_GENERATION: KindTraits(decoded=False, engines=False),
    RequestKind.IMAGE_EDIT: KindTraits(decoded=False, engines=False),
}
DECODED_KINDS: Final = frozenset(kind for kind, traits in KIND_TRAITS.items() if traits.decoded)
