"""The kinds of request, and what a decision must know of each.

A further kind is a member of `RequestKind` and an entry of `KIND_TRAITS`. What else is particular
to a kind is in `gateway.kinds`, which the router does not import.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
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


class PromptCount(Enum):
    """The number of prompts, each within a context, that one request of a kind can have."""

    ONE = auto()
    PER_CHOICE = auto()  # each choice may have one
    LISTED = auto()  # a list's texts are read one by one, as many as it has


@dataclass(frozen=True, slots=True)
class KindTraits:
    """The facts of a kind that filters and forecasts use.

    `decoded`: the engine decodes the answer token by token for one client, so the request has a
    TPOT and a KV cache that grows. Other answers come at once, or follow from what was heard.
    `engines`, `apis`: whether own engines, and providers, may be declared to serve it. `prompts`:
    how many a request has; with `LISTED` no context bounds the request.
    """

    decoded: bool
    prompts: PromptCount
    engines: bool = True
    apis: bool = True


# A plain dict: its lookup costs as little as the test of a set.
KIND_TRAITS: Final[dict[RequestKind, KindTraits]] = {
    RequestKind.CHAT: KindTraits(decoded=True, prompts=PromptCount.ONE),
    RequestKind.COMPLETION: KindTraits(decoded=True, prompts=PromptCount.PER_CHOICE),
    RequestKind.EMBEDDING: KindTraits(decoded=False, prompts=PromptCount.LISTED),
    RequestKind.RERANK: KindTraits(decoded=False, prompts=PromptCount.LISTED),
    RequestKind.TRANSCRIPTION: KindTraits(decoded=False, prompts=PromptCount.LISTED),
    RequestKind.SCORE: KindTraits(decoded=False, prompts=PromptCount.LISTED),
    RequestKind.MODERATION: KindTraits(decoded=False, prompts=PromptCount.LISTED, engines=False),
    RequestKind.TOKENIZE: KindTraits(decoded=False, prompts=PromptCount.LISTED, apis=False),
    RequestKind.SPEECH: KindTraits(decoded=False, prompts=PromptCount.LISTED, engines=False),
    RequestKind.IMAGE_GENERATION: KindTraits(
        decoded=False, prompts=PromptCount.LISTED, engines=False
    ),
    RequestKind.IMAGE_EDIT: KindTraits(decoded=False, prompts=PromptCount.LISTED, engines=False),
}
DECODED_KINDS: Final = frozenset(kind for kind, traits in KIND_TRAITS.items() if traits.decoded)
