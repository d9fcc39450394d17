"""Listens to engines that tell of their prefix caches, where the configuration says so.

Telemetry's, for no worker has time for it: each engine's events become one number on the board,
`FORGOTTEN_S`, which every worker's prefix index respects. An address with `*` is one that the
engine connects to; at any other it waits for us. What comes before we listen, or while nobody
does, is lost, and costs no more than believing as long as without events.
"""

import logging

from backends.kvevents import KvEventError, PrefixMemory
from gateway.clock import Clock

QUEUE_BATCHES = 10_000  # that wait for us at most; beyond it the newest are lost, and counted
LOG_S = 60.0

log = logging.getLogger("breakeven.telemetry")


async def listen(name: str, address: str, memory: PrefixMemory, clock: Clock) -> None:
    """Fold all that the engine `name` tells into `memory`, until cancelled."""
    import zmq.asyncio  # noqa: PLC0415  (few engines are configured to tell)

    told_s = -LOG_S
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.RCVHWM, QUEUE_BATCHES)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        try:
            if "*" in address:
                socket.bind(address)
            else:
                socket.connect(address)
        except zmq.ZMQError as error:
            log.warning("%s: no KV events from %s: %s", name, address, error)
            return
        while True:
            frames = await socket.recv_multipart()
            try:
                memory.fold(frames, clock.now_s())
            except KvEventError as error:
                if clock.now_s() - told_s >= LOG_S:
                    told_s = clock.now_s()
                    log.warning("%s: what %s says is no KV event: %s", name, address, error)
