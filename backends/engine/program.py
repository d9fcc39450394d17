"""Interface between the supervisor and an engine program; vLLM is the only one.

This module is also imported to read a configuration, so it imports the code that starts an engine
only when that runs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backends.engine.environment import Environment
    from backends.engine.flags import EngineLaunch


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """Functions of an engine program that the supervisor calls.

    `known_flags` returns the flags that an installation accepts; it blocks. `command` returns the
    command line for a port. `refused_adapter` returns, from the output of a failed start, the
    adapter that caused the failure.
    """

    known_flags: "Callable[[Environment], frozenset[str]]"
    command: "Callable[[EngineLaunch, frozenset[str], int], list[str]]"
    refused_adapter: Callable[[str, Iterable[str]], str | None]


def _known_flags(environment: "Environment") -> frozenset[str]:
    from backends.engine import flags  # noqa: PLC0415  (see above)

    return flags.known_flags(environment)


def _command(launch: "EngineLaunch", known: frozenset[str], port: int) -> list[str]:
    from backends.engine import flags  # noqa: PLC0415  (see above)

    return flags.command(launch, known, port)


def _find_refused(output: str, names: Iterable[str]) -> str | None:
    from backends.engine import adapters  # noqa: PLC0415  (see above)

    return adapters.find_refused(output, names)


VLLM_PROGRAM: Final = EngineProgram(_known_flags, _command, _find_refused)
