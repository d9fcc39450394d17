"""Entry point of engine supervision; a host without own engines does not import it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from gateway.config.settings import Settings
from gateway.fleet.engine_notes import PARENT, EngineStatusNotes
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.children import Forks
from gateway.runtime import Runtime

if TYPE_CHECKING:
    from gateway.host.engines import EngineSupervision

Supervision: TypeAlias = "EngineSupervision | None"


async def installed() -> None:
    """Do nothing: the engine environment of this host exists already."""


def supervision_for(
    settings: Settings,
    runtime: Runtime,
    board: SharedLoadTable,
    say: Callable[[str], None],
    ready: Callable[[], Awaitable[None]],
    forks: Forks | None,
) -> Supervision:
    """Return the supervision of this host's engines; `None` if it starts none."""
    if not any(replica.managed for replica in runtime.engines):
        EngineStatusNotes(runtime.run_dir, PARENT).publish()  # replaces those of an earlier run
        return None
    from gateway.host.engines import EngineSupervision  # noqa: PLC0415  (a thirtieth of a start)

    return EngineSupervision(settings, runtime, board, say, ready, forks)


async def run_engines(supervision: Supervision) -> None:
    """Start the engines of a host that has any."""
    if supervision is not None:
        await supervision.run()
