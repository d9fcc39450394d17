"""Recorded requests with their times: the input of a replay."""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from gateway.config.conditions import ConditionInput

PREFIX_TOKENS = 512  # as published traces count prefixes


class Arrival(NamedTuple):
    """One request: `output_tokens` is what it will turn out to be, which no decision may read.

    `prefix` are ids of the prompt's leading parts of `PREFIX_TOKENS` tokens each; equal leading ids
    are an equal beginning, which an engine's prefix cache may hold. `inside`: whoever asked may not
    leave the network, whatever the policies say. `session`: whose requests stay together, where the
    model is sticky; empty: none. Of a `recorded` one, `cached` tokens of the prompt were charged as
    cached by `api`, or were taken to be cached elsewhere where an own engine answered;
    `estimate` and `bound` are what its prompt was taken for when it was decided (0: not known),
    `content` what detectors found in it (None: nobody looked).
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
        """Return ids of the prompt's leading parts: as told, else those of its session."""
        if self.prefix or not self.session:
            return self.prefix
        first = self.session_number() << 20  # a session has fewer parts
        return range(first, first + self.prompt_tokens // PREFIX_TOKENS)

    def session_number(self) -> int:
        """Return the same number for each request of one session, and hardly of another one."""
        return crc32(f"{self.tenant}\0{self.model}\0{self.session}".encode())

    def condition_input(self, model: str) -> ConditionInput:
        """Return what a policy's condition sees of it."""
        return ConditionInput(
            model=model,
            team=self.tenant,
            prompt_tokens=self.prompt_tokens,
            max_tokens=self.max_tokens or 0,
        )

    def blocks(self, block_tokens: int) -> tuple[int, ...]:
        """The prefix by an engine's own blocks, which must divide its parts."""
        each = PREFIX_TOKENS // block_tokens
        return tuple([part * each + place for part in self.parts() for place in range(each)])
