"""Address at which an engine publishes its KV cache events.

The events contain the tokens of all prompts. An engine that `serve` starts therefore uses a Unix
socket in the state directory, which other users cannot open, and not a port.
"""

from pathlib import Path

from gateway.config.pool_seats import seats_of
from gateway.config.schema import Settings


def kv_events_address(settings: Settings, pool: str, index: int) -> str | None:
    """Return the address of the replica's KV cache events; `None` if it publishes none."""
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
