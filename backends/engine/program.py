"""The start of a supervised engine from an environment of its own; vLLM is the first.

Who only reads a configuration imports this, too: what starts an engine is imported where it does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backends.engine.environment import Environment
    from backends.engine.flags import EngineLaunch


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """The three questions that the supervisor asks of an engine.

    `known_flags` asks the installation which flags it has; it blocks. `command` returns the whole
    command line for a port. `refused_adapter` finds in the output of a start that ended the
    adapter that ended it.
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
