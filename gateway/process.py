"""Startup of each process that `serve` starts: arguments, configuration and log."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gateway import logs
from gateway.config.credentials import known_secrets
from gateway.config.settings import Settings, load
from gateway.runtime import Runtime

WHERE_WORKERS_LISTEN = "where this host's workers listen"  # help of `--address`


class ProcessStart(NamedTuple):
    """Settings, runtime values, log sink and parsed arguments (`given`) of a process."""

    settings: Settings
    runtime: Runtime
    sink: logs.LogSink
    given: argparse.Namespace


def start_process(
    module: str, name: str, about: str | None, words: Sequence[str] | None, **further: str
) -> ProcessStart:
    """Parse the arguments, load the configuration and start the log of a process.

    `name` is the process name in the log; it may contain arguments, such as `worker-{worker}`.
    `further` maps additional required options to their help texts.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--runtime", type=Path, required=True)
    for option, told in further.items():
        parser.add_argument(f"--{option}", required=True, help=told)
    given = parser.parse_args(words)
    settings, runtime = load(given.config), Runtime.load(given.runtime)
    secrets = known_secrets(settings, os.environ)
    sink = logs.start(name.format(**vars(given)), settings.logs, secrets)
    return ProcessStart(settings, runtime, sink, given)
