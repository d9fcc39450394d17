"""Wrapper that sends the logs and output of a program to the gateway's log sink.

    python -m gateway.host.log_wrapper NAME FORMAT LEVEL TO -m MODULE WORDS...

It is for the ledger writer and the dashboard, which import nothing of the gateway, and for
Streamlit, which prints. The module's `main` runs in this process.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from backends.secret import Secret
from gateway import logs
from gateway.host.run_module import run_module


class LogOptions(NamedTuple):
    """Values of the section `logs`, passed as arguments because no configuration is read."""

    format: str
    level: str
    to: str = "files"


def wrapper_arguments(name: str, wanted: LogOptions, module: str) -> list[str]:
    """Return the arguments of a wrapped program, after `python`."""
    return ["-m", "gateway.host.log_wrapper", name, *wanted, "-m", module]


def passwords(environ: Mapping[str, str]) -> Iterator[Secret]:
    """Yield the passwords in all URLs of the environment."""
    for text in environ.values():
        if "://" not in text or len(text) > 4096:
            continue
        try:
            found = urlsplit(text).password
        except ValueError:
            continue
        if found:
            yield from (Secret(found), Secret(unquote(found)))


def main() -> None:
    name, form, level, to, dash, module, *rest = sys.argv[1:]
    assert dash == "-m", "written by `wrapper_arguments`"
    logs.start(name, LogOptions(form, level, to), passwords(os.environ))
    sys.argv = [module, *rest]
    run_module(module)


if __name__ == "__main__":
    main()
