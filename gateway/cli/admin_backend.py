"""Backend that runs a command's operation: this host, or another gateway (`--gateway`)."""

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import msgspec
import typer
from sqlalchemy import Engine

from gateway.cli.config import configured_reader, ledger_engine, load_known_or_fail
from gateway.cli.output import fail
from gateway.clock import Clock
from gateway.control.admin.gateway_address import gateway_url
from gateway.control.admin.verb import AdminOperation, OperationContext
from gateway.control.os_user import os_user

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.control.admin.enginehost import EngineHost

G = TypeVar("G", bound=msgspec.Struct)
LedgerOpener = Callable[["Settings"], AbstractContextManager[Engine]]
By = Annotated[
    str | None, typer.Option(help="Name recorded as the author; default: the user's name.")
]
Why = Annotated[str | None, typer.Option("--note", help="The reason, for later readers.")]


class AdminBackend(Protocol):
    """Interface that runs operations and returns their results.

    Implemented by `LocalAdmin`, and by the HTTP client of another gateway.
    """

    def do(self, verb: AdminOperation[G], given: G) -> dict[str, Any]: ...


class LocalAdmin:
    """Backend on this host, with all permissions, as its user."""

    def __init__(self, settings: "Settings", by: str | None, opened: Callable[[], Engine]) -> None:
        self._settings = settings
        self._by = by
        self._opened = opened

    def do(self, verb: AdminOperation[G], given: G) -> dict[str, Any]:
        by, here = self._by or os_user(), partial(_running_here, self._settings)
        return verb.work(
            OperationContext(self._settings, by, Clock().wall_us(), self._opened, here), given
        )


def _running_here(settings: "Settings") -> AbstractContextManager["EngineHost"]:
    """Open the shared memory of the host's processes; few commands need it."""
    from gateway.control.admin.enginehost import running_here  # noqa: PLC0415  (with all of that)

    return running_here(settings)


def open_backend(config: Path) -> AbstractContextManager[AdminBackend]:
    """Open a read-only backend; a refusal in the block prints one line and exits with 1.

    Before the first `serve` it reads what the configuration declares (`configured_reader`).
    """
    return _desk(config, None, partial(configured_reader, config=config))


def open_writing_backend(
    config: Path, by: str | None, ledger: LedgerOpener = ledger_engine
) -> AbstractContextManager[AdminBackend]:
    """Open a backend that may write; create the ledger if missing."""
    if gateway_url() is not None and by is not None:
        fail(
            "--by has no effect with --gateway, which records the owner of the key: leave --by out"
        )
    return _desk(config, by, ledger)


def run_query(config: Path, verb: AdminOperation[G], given: G) -> dict[str, Any]:
    """Return the result of a read operation."""
    with open_backend(config) as desk:
        return desk.do(verb, given)


def run_change(config: Path, by: str | None, verb: AdminOperation[G], given: G) -> dict[str, Any]:
    """Return the result of an operation that changes something."""
    with open_writing_backend(config, by) as desk:
        return desk.do(verb, given)


@contextmanager
def _desk(config: Path, by: str | None, ledger: LedgerOpener) -> Iterator[AdminBackend]:
    url = gateway_url()
    try:
        with ExitStack() as opened:
            if url is None:
                settings = load_known_or_fail(config)
                yield LocalAdmin(
                    settings, by, cache(lambda: opened.enter_context(ledger(settings)))
                )
            else:
                # Imported on use: the HTTP client takes a tenth of a command's time.
                elsewhere: Any = importlib.import_module("gateway.control.admin.remote")
                desk: AdminBackend = opened.enter_context(elsewhere.remote(url, os.environ))
                if elsewhere.is_cleartext(url):
                    typer.echo(
                        f"warning: the key is sent to {url} without encryption: use https", err=True
                    )
                yield desk
    except Exception as error:
        from gateway.control.admin.refusals import is_refused  # noqa: PLC0415  (of every verb)

        if is_refused(error):
            fail(str(error))
        raise
