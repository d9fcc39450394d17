"""Keys by which hosts identify the same engine: its address and its model's name.

Hosts may have different rows and pools. A loopback address is local to a machine or pod, so it
identifies the same engine only within one network namespace.
"""

import secrets
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

SIZE = 16  # bytes
_BOOT, _NETWORK = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/net")


def network_namespace_id() -> bytes:
    """Return an id of this network namespace; random bytes if it cannot be read."""
    try:
        return f"{_BOOT.read_text().strip()} {_NETWORK.readlink()}".encode()
    except OSError:
        return secrets.token_bytes(SIZE)


def engine_key(base_url: str, served_name: str, place: bytes) -> bytes:
    """Return `SIZE` bytes, equal on all hosts that reach this engine at this address."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"
    local = place if _is_local(host) else b""
    made = blake2b(digest_size=SIZE)
    for part in (address.encode(), served_name.encode(), local):
        made.update(len(part).to_bytes(4, "big") + part)
    return made.digest()


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
