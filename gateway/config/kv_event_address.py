"""The address on which an engine publishes the changes of its prefix cache.

What it tells holds the tokens of everybody's prompts. An engine that `serve` starts therefore tells
it on a Unix socket in the state directory, which no other user of the machine can open, and not on
a port.
"""

from pathlib import Path

from gateway.config.pool_seats import seats_of
from gateway.config.schema import Settings


def kv_events_address(settings: Settings, pool: str, index: int) -> str | None:
    """Return the events' address of an engine in its place; `None` if it publishes none."""
    section = settings.pools[pool]
    engine, seat = section.engine, seats_of(section)[index]
    if seat.url is not None:
        told = engine.kv_events if isinstance(engine.kv_events, tuple) else ()
        is_named = seat.role == "whole" and seat.place < len(told)
        return told[seat.place] if is_named else None
    if engine.kv_events is not True:
        return None
    name = f"kv-{pool}-{index}".replace("/", "-")
    return f"ipc://{Path(settings.state_dir).resolve() / 'run' / name}"


def socket_path(address: str) -> str:
    """Return the path of an address `ipc://PATH`; empty for any other."""
    return address.removeprefix("ipc://") if address.startswith("ipc://") else ""
