"""Whether a host has engines of its own to keep alive; one that has none imports no supervision."""

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
    """For a host whose engine environment is made beforehand."""


def supervision_for(
    settings: Settings,
    runtime: Runtime,
    board: SharedLoadTable,
    say: Callable[[str], None],
    ready: Callable[[], Awaitable[None]],
    forks: Forks | None,
) -> Supervision:
    """Return the supervision of this host's engines; `None` where others run them all."""
    if not any(replica.managed for replica in runtime.engines):
        EngineStatusNotes(runtime.run_dir, PARENT).publish()  # in place of an earlier life's
        return None
    from gateway.host.engines import EngineSupervision  # noqa: PLC0415  (a thirtieth of a start)

    return EngineSupervision(settings, runtime, board, say, ready, forks)


async def run_engines(supervision: Supervision) -> None:
    """Start the engines of a host that has any."""
    if supervision is not None:
        await supervision.run()
