"""One request's use of the response cache, from its body to its last byte."""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.kinds.inference_request import InferenceRequest
from ledger.journals.records import TokenCounts


class CacheDirectives(NamedTuple):
    """A client's cache directives; `max_age_s` is the oldest answer that it accepts."""

    reads: bool = True
    stores: bool = True
    max_age_s: int | None = None
    any_answer: bool = False


class AskedBytes(NamedTuple):
    """The parts of a request as sent that belong to the name of its answer."""

    path: str
    text: bytes
    told: tuple[tuple[str, str], ...]  # headers that change an answer


@dataclass(slots=True)
class CacheUse:
    """One request's use of the cache.

    `forbidden`: the answer was changed, or the request was, so the answer is not stored. `tokens`
    are those of the answer that was found.
    """

    asked: InferenceRequest
    sent: AskedBytes
    directives: CacheDirectives
    name: bytes | None = None
    forbidden: bool = False
    tokens: TokenCounts | None = None

    def forbid(self) -> None:
        """Store nothing of the answer; called by code that masks, rewrites or cuts any of it."""
        self.forbidden = True
