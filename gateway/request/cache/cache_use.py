"""Holds what one request asks of the response cache, from its body to its last byte."""

from dataclasses import dataclass
from typing import NamedTuple

from gateway.kinds.inference_request import InferenceRequest


class CacheDirectives(NamedTuple):
    """A client's words on the cache. `max_age_s`: the oldest answer that it takes."""

    reads: bool = True
    stores: bool = True
    max_age_s: int | None = None
    any_answer: bool = False


class AskedBytes(NamedTuple):
    """A request as its client sent it: what of it belongs to the name of its answer."""

    path: str
    text: bytes
    told: tuple[tuple[str, str], ...]  # headers that change an answer


@dataclass(slots=True)
class CacheUse:
    """The use that one request makes of the cache, from its body on.

    `forbidden`: its answer is not what a target said, or is no longer of what its client sent.
    """

    asked: InferenceRequest
    sent: AskedBytes
    directives: CacheDirectives
    name: bytes | None = None
    forbidden: bool = False

    def forbid(self) -> None:
        """Keep nothing of the answer: to be called by whoever masks, rewrites or cuts any of it."""
        self.forbidden = True
