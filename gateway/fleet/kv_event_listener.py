"""Listener for KV cache events of engines, where the configuration enables them.

It runs in telemetry, because workers have no time for it. Each engine's events become one number in
the shared load table, `FORGOTTEN_S`, which all prefix indexes use. At an address with `*` the
listener binds and the engine connects; at any other the listener connects. Lost events only make
the index believe in cached prefixes for as long as without events.
"""

import logging

from backends.kvevents import KvEventError, PrefixMemory
from gateway.clock import Clock

QUEUE_BATCHES = 10_000  # maximum queue; beyond it the newest are dropped and counted
LOG_S = 60.0

log = logging.getLogger("breakeven.telemetry")


async def listen(name: str, address: str, memory: PrefixMemory, clock: Clock) -> None:
    """Fold the KV events of engine `name` into `memory`, until cancelled."""
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
            log.warning(
                "cannot subscribe to KV events engine=%s address=%s error=%s", name, address, error
            )
            return
        while True:
            frames = await socket.recv_multipart()
            try:
                memory.fold(frames, clock.now_s())
            except KvEventError as error:
                if clock.now_s() - told_s >= LOG_S:
                    told_s = clock.now_s()
                    log.warning(
                        "invalid KV event engine=%s address=%s error=%s", name, address, error
                    )
