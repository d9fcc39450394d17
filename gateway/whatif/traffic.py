"""Recorded requests with their times: the input of a replay."""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from gateway.config.conditions import ConditionInput

PREFIX_TOKENS = 512  # as published traces count prefixes


class Arrival(NamedTuple):
    """One request. `output_tokens` is its actual output, which no decision may read.

    `prefix` has ids of the prompt's leading parts of `PREFIX_TOKENS` tokens each; equal leading ids
    are an equal prefix, which an engine's prefix cache may hold. `inside`: the request may not
    leave the network, whatever the policies say. `session` keeps requests together if the model is
    sticky; empty for none. For a `recorded` request, `cached` prompt tokens were charged as cached
    by `api`, or assumed cached elsewhere if an own engine answered; `estimate` and `bound` are the
    prompt tokens at its decision (0: unknown), `content` the kinds that detectors found (`None`:
    not inspected).
    """

    at_s: float
    prompt_tokens: int
    output_tokens: int
    model: str
    tenant: str = ""
    max_tokens: int | None = None
    prefix: tuple[int, ...] = ()
    inside: bool = False
    session: str = ""
    cached: int = 0
    api: str = ""
    recorded: bool = False
    estimate: int = 0
    bound: int = 0
    content: str | None = None

    def parts(self) -> Sequence[int]:
        """Return ids of the prompt's leading parts: the given ones, else those of its session."""
        if self.prefix or not self.session:
            return self.prefix
        first = self.session_number() << 20  # a session has fewer parts
        return range(first, first + self.prompt_tokens // PREFIX_TOKENS)

    def session_number(self) -> int:
        """Return a number that is equal for all requests of a session, and rarely for others."""
        return crc32(f"{self.tenant}\0{self.model}\0{self.session}".encode())

    def condition_input(self, model: str) -> ConditionInput:
        """Return the facts that a policy's condition can test."""
        return ConditionInput(
            model=model,
            team=self.tenant,
            prompt_tokens=self.prompt_tokens,
            max_tokens=self.max_tokens or 0,
        )

    def blocks(self, block_tokens: int) -> tuple[int, ...]:
        """Return the prefix as ids of an engine's blocks, whose size must divide its parts."""
        each = PREFIX_TOKENS // block_tokens
        return tuple([part * each + place for part in self.parts() for place in range(each)])
