"""Telemetry that lives and does nothing is ended, so that it is started again.

A process that hangs tells nobody that it does. The board has the moment when telemetry was heard of
last; a life that spoke and then fell silent for `HUNG_S` is killed. One that has not spoken yet is
still being started, which takes what it takes.

The exchange with other hosts likewise, and sooner: what they had in flight is dropped when it is
silent for half a second, as its own end would have done with a host that is silent.
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
    """Until cancelled."""
    ended = 0  # the life that was ended last
    while True:
        await next_tick(LOOK_S)
        now_s = clock.now_s()
        silent_s = board.silent_s(now_s)
        if telemetry.lives != ended and HUNG_S < silent_s < now_s - telemetry.began_s:
            ended = telemetry.lives
            say(f"telemetry was silent for {silent_s:.0f} s: it is ended and started again")
            telemetry.restart()


async def watch_peers(
    exchange: ChildProcess, board: SharedLoadTable, clock: Clock, say: Callable[[str], None]
) -> None:
    """Until cancelled."""
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
            say(f"the exchange with other hosts was silent for {HUNG_S:.0f} s: it is started again")
            cleared_s = None
            exchange.restart()
