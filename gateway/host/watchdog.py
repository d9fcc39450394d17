"""Watchdog that restarts a telemetry process that hangs.

The shared load table has the time of telemetry's last heartbeat. A process that published one and
then is silent for `HUNG_S` is killed. A process without a heartbeat is still starting, for however
long. The peer exchange is watched, too: its load is dropped after half a second of silence, as the
exchange itself does with the load of a silent host.
"""

from collections.abc import Callable

from gateway.clock import Clock, next_tick
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.children import ChildProcess

HUNG_S = 10.0
LOOK_S = 1.0
PEERS_SILENT_S, PEERS_LOOK_S = 0.5, 0.25


async def watch(
    telemetry: ChildProcess, board: SharedLoadTable, clock: Clock, say: Callable[[str], None]
) -> None:
    """Watch telemetry until cancelled."""
    ended = 0  # number of the process killed last
    while True:
        await next_tick(LOOK_S)
        now_s = clock.now_s()
        silent_s = board.silent_s(now_s)
        if telemetry.lives != ended and HUNG_S < silent_s < now_s - telemetry.began_s:
            ended = telemetry.lives
            say(f"restarting the telemetry process: it did not respond for {silent_s:.0f} s")
            telemetry.restart()


async def watch_peers(
    exchange: ChildProcess, board: SharedLoadTable, clock: Clock, say: Callable[[str], None]
) -> None:
    """Watch the peer exchange until cancelled."""
    row, cleared_s = PeerLoadRow(board), None
    life = exchange.lives
    while True:
        await next_tick(PEERS_LOOK_S)
        now_s = clock.now_s()
        silent_s = row.silent_s(now_s)
        if exchange.lives != life or silent_s:
            life, cleared_s = exchange.lives, None
        if silent_s > PEERS_SILENT_S:
            row.clear()
            cleared_s = now_s
        elif cleared_s is not None and now_s - cleared_s > HUNG_S:
            say(f"restarting the exchange with other hosts: it did not respond for {HUNG_S:.0f} s")
            cleared_s = None
            exchange.restart()
