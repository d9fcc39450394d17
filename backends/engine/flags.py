"""Command line of the engine: the user's flags, and defaults for those not given.

Flags change between releases, and one unknown flag prevents the start. `--help` of the installation
lists the known ones. It takes seconds, so the list is cached in the environment, which an upgrade
replaces as a whole.
"""

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backends.engine import adapters
from backends.engine.environment import Environment, Flavour, variables
from backends.engine.packages import run
from backends.engine.tasks import TASKS, TaskName

_SERVE = ("-m", "vllm.entrypoints.cli.main", "serve")  # `vllm serve`, independent of PATH
_CACHE = "breakeven-flags.json"
_HELP_TIMEOUT_S = 180.0


class BadFlags(Exception):
    """A flag is unknown to this vLLM, or the installation cannot list its flags."""


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """Parameters of an engine's start: the model, the name it is served under, and user flags.

    `adapters` are folders by the name they are served under. `gpus` are names or indexes of the
    visible GPUs; if empty, the engine sees those of its parent. `traces` is the complete OTLP/HTTP
    address for spans. `environ` are additional environment variables.
    """

    environment: Environment
    model: Path
    served_name: str
    flavour: Flavour = "cpu"
    kind: TaskName = "generate"
    flags: tuple[str, ...] = ()
    eager: bool = True
    drain_s: float = 30.0
    gpus: tuple[str, ...] = ()
    traces: str | None = None
    adapters: Mapping[str, Path] = field(default_factory=dict)
    environ: tuple[tuple[str, str], ...] = ()


def known_flags(environment: Environment) -> frozenset[str]:
    """Return every `--flag` of the installed vLLM. Blocking; the first call starts vLLM.

    Raises `BadFlags` when vLLM does not run.
    """
    cache = environment.directory / _CACHE
    try:
        return frozenset(json.loads(cache.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        pass
    stamp = environment.stamp()
    flavour: Flavour = stamp.flavour if stamp else "cpu"
    command = [str(environment.python), *_SERVE, "--help=all"]
    environ = variables(os.environ, flavour=flavour)
    code, text = run(command, environ, keep_lines=20_000, timeout_s=_HELP_TIMEOUT_S)
    flags = read_help(text)
    if code != 0 or "--model" not in flags:
        raise BadFlags(f"vLLM in {environment.directory} does not run:\n{text[-2000:]}")
    with suppress(OSError):  # full disk or no permission: --help runs again next time
        cache.write_text(json.dumps(sorted(flags)), encoding="utf-8")
    return flags


def read_help(text: str) -> frozenset[str]:
    """Return the long options, with aliases, of an argparse help text."""
    lines = re.findall(r"^\s{1,4}(-{1,2}[A-Za-z][^\n]*)", text, re.MULTILINE)
    return frozenset(flag for line in lines for flag in re.findall(r"--[a-z][a-z0-9-]*", line))


def command(launch: EngineLaunch, known: frozenset[str], port: int) -> list[str]:
    """Return the command line that starts the engine.

    Raises `BadFlags` when a user's flag is not in `known`, and `BadAdapter` when a folder holds no
    adapter.
    """
    for wrong in unknown_flags(launch.flags, known):
        raise BadFlags(wrong)
    given = _flag_names(launch.flags)
    words = [str(launch.environment.python), *_SERVE]
    if "--model" not in given:
        words.append(str(launch.model))
    for flag, values in _ours(launch, port):
        if flag in known and flag not in given and flag.replace("--", "--no-", 1) not in given:
            words += [flag, *values]
    return [*words, *adapters.flags(launch.adapters), *launch.flags]


def unknown_flags(flags: Sequence[str], known: frozenset[str]) -> list[str]:
    """Return an error sentence, with the closest match, for each flag that is not in `known`."""
    found: list[str] = []
    for flag in sorted(_flag_names(flags) - known):
        if flag.partition(".")[0] not in known and flag.replace("--no-", "--") not in known:
            near = difflib.get_close_matches(flag, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            found.append(f"this vLLM has no flag {flag}{hint}")
    return found


def _flag_names(flags: Sequence[str]) -> set[str]:
    return {word.partition("=")[0].replace("_", "-") for word in flags if word[:2] == "--"}


def _ours(launch: EngineLaunch, port: int) -> list[tuple[str, Sequence[str]]]:
    ours: list[tuple[str, Sequence[str]]] = [
        ("--served-model-name", [launch.served_name]),
        ("--host", ["127.0.0.1"]),
        ("--port", [str(port)]),
        # Lets streams finish on SIGTERM. Without it they stop sending and never close.
        ("--shutdown-timeout", [str(int(launch.drain_s))]),
        # Cached tokens, which have their own price, are in `usage` only with this flag.
        ("--enable-prompt-tokens-details", []),
    ]
    if launch.traces is not None:
        ours.append(("--otlp-traces-endpoint", [launch.traces]))
    if launch.flavour == "cpu" and launch.eager:
        ours.append(("--enforce-eager", []))
    task = TASKS[launch.kind]
    if task.pooling:
        ours.append(("--runner", ["pooling"]))
    elif task.calls_tools and _speaks_hermes(launch.model):
        ours += [("--enable-auto-tool-choice", []), ("--tool-call-parser", ["hermes"])]
    return ours


def _speaks_hermes(model: Path) -> bool:
    """Return whether the chat template writes tool calls as `<tool_call>`.

    Tool calls of other templates need a parser that the user sets by flag.
    """
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        try:
            text = (model / name).read_text(encoding="utf-8")
        except OSError:
            continue
        if "<tool_call>" in text:
            return True
    return False
