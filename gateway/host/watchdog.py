"""Telemetry that lives and does nothing is ended, so that it is started again.

A process that hangs tells nobody that it does. The board has the moment when telemetry was heard of
last; a life that spoke and then fell silent for `HUNG_S` is killed. One that has not spoken yet is
still being started, which takes what it takes.
"""

import asyncio
from collections.abc import Callable

from gateway.clock import Clock
from gateway.host.children import Child
from gateway.targets.slots import Board

HUNG_S = 10.0
LOOK_S = 1.0


async def watch(telemetry: Child, board: Board, clock: Clock, say: Callable[[str], None]) -> None:
    """Until cancelled."""
    life, began_s = telemetry.lives, clock.now_s()
    while True:
        await asyncio.sleep(LOOK_S)
        now_s = clock.now_s()
        if telemetry.lives != life:
            life, began_s = telemetry.lives, now_s
        silent_s = board.silent_s(now_s)
        if HUNG_S < silent_s < now_s - began_s:
            say(f"telemetry was silent for {silent_s:.0f} s: it is ended and started again")
            telemetry.restart()
