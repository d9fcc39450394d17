"""Request kinds, and the traits of each that a decision needs.

A new kind is a member of `RequestKind` and an entry of `KIND_TRAITS`. Other facts of a kind are in
`gateway.kinds`, which the router does not import.
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
    LISTED = auto()  # the texts of a list are read one by one


@dataclass(frozen=True, slots=True)
class KindTraits:
    """Traits of a kind that filters and forecasts use.

    `decoded` means that the engine decodes the answer token by token for one client, so the request
    has a TPOT and a growing KV cache. `engines` and `apis` say whether own engines and providers
    may be declared to serve it. With `prompts` set to `LISTED` no context limit applies to the
    request.
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
