"""Upstreams that say one token, and all others once the client has read that one.

A busy machine makes and reads a whole answer in one piece. Here it comes in two at any pace.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx

from backends.simulator.dialect import SimulatedChoice
from backends.simulator.generation import GenerationProgress, TokenSource

UPSTREAMS = {"own": "engine", "api": "alpha"}  # by the model that is asked for


class HeldProgress:
    """One sequence, told as far as it may be: all but these two members are its own."""

    def __init__(self, whole: GenerationProgress, source: "HeldSource") -> None:
        self.whole, self._source = whole, source

    @property
    def generated(self) -> int:
        return self.whole.generated if self._source.is_open else min(1, self.whole.generated)

    @property
    def done(self) -> bool:
        return self.whole.done and self._source.is_open

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)


class HeldSource:
    """Stands before a server's own source of tokens until it is opened."""

    def __init__(self, source: TokenSource) -> None:
        self.is_open = False
        self._source = source
        self._wakes: list[Callable[[], None]] = []

    def start(self, choice: SimulatedChoice, wake: Callable[[], None]) -> HeldProgress:
        self._wakes.append(wake)
        return HeldProgress(self._source.start(choice, wake), self)

    def stop(self, progress: HeldProgress) -> None:
        self._source.stop(progress.whole)

    async def open(self) -> None:
        self.is_open = True
        for wake in self._wakes:
            wake()


def read_in_two(stack: Any, path: str, asked: dict[str, Any]) -> tuple[httpx.Response, bytes]:
    """The answer to a stream, and its bytes; a gateway that keeps words back never gets the rest.

    `asked` names a model of `UPSTREAMS`.
    """
    upstream = {**stack.servers, **stack.providers}[UPSTREAMS[asked["model"]]]
    setting = upstream._setting
    held, read = HeldSource(setting.source), b""
    upstream._setting = replace(setting, source=held)
    try:
        sent = {"json": asked, "headers": stack.headers()}
        with stack.client.stream("POST", stack.url + path, **sent) as answer:
            for part in answer.iter_bytes():
                read += part
                if b"delta" in read and not held.is_open:
                    stack.call(held.open())
    finally:
        upstream._setting = setting
    return answer, read
