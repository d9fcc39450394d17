"""How a supervised engine is started from an environment of its own; vLLM is the first."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from backends.engine import adapters, flags
from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """The three questions that the supervisor asks of an engine.

    `known_flags` asks the installation which flags it has; it blocks. `command` returns the whole
    command line for a port. `refused_adapter` finds in the output of a start that ended the
    adapter that ended it.
    """

    known_flags: Callable[[Environment], frozenset[str]]
    command: Callable[[EngineLaunch, frozenset[str], int], list[str]]
    refused_adapter: Callable[[str, Iterable[str]], str | None]


VLLM_PROGRAM: Final = EngineProgram(flags.known_flags, flags.command, adapters.find_refused)
