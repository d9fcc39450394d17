"""The bytes between two hosts: a proof on either side, then numbers. Pure.

    hears -> dials   MAGIC, its id (16), a challenge (32)
    dials -> hears   the same of its own, and HMAC-SHA256(secret, "dials" and both hellos)
    hears -> dials   HMAC-SHA256(secret, "hears" and both hellos)
    dials -> hears   frames: length (4), number (8), entries (72 each), tag (32)

Both challenges are new for each connection, so neither a proof nor a frame is of use in another
one. A frame's tag is by a key of the connection and covers its number, which goes up by one: none
can be changed, repeated, left out or put in between. A frame is all that its host has in flight,
not what changed: any of them stands for itself. They are numbers of load and not encrypted.
"""

import hmac
import struct
from collections.abc import Mapping
from hashlib import sha256

from backends.secret import Secret
from gateway.fleet.peers.keys import SIZE as KEY_BYTES
from gateway.fleet.peers.peer_load import PeerEngineLoad, is_sound

MAGIC = b"breakeven peers 1\n"
ID_BYTES, CHALLENGE_BYTES, TAG_BYTES = 16, 32, 32
HELLO_BYTES = len(MAGIC) + ID_BYTES + CHALLENGE_BYTES
LONGEST = 64 * 1024  # bytes after the length
_LENGTH, _NUMBER = struct.Struct("!I"), struct.Struct("!Q")
_ENTRY = struct.Struct(f"!{KEY_BYTES}s7d")
LENGTH_BYTES = _LENGTH.size
MOST_ENTRIES = (LONGEST - _NUMBER.size - TAG_BYTES) // _ENTRY.size

Shares = Mapping[bytes, PeerEngineLoad]
"""By an engine's key; of an engine that is not in it nothing is in flight."""


class BadFrame(Exception):
    """A frame that is not from a host of this group, or is malformed."""


def hello_frame(own_id: bytes, challenge: bytes) -> bytes:
    return MAGIC + own_id + challenge


def id_of(greeting: bytes) -> bytes:
    """Return the host of a greeting, which proves nothing yet. Raises `BadFrame`."""
    if len(greeting) != HELLO_BYTES or not greeting.startswith(MAGIC):
        raise BadFrame("no hello of this version")
    return greeting[len(MAGIC) : len(MAGIC) + ID_BYTES]


class Handshake:
    """Both hellos of one connection, and what the secret makes of them."""

    def __init__(self, secret: Secret, hears: bytes, dials: bytes) -> None:
        self._secret, self._hellos = secret, hears + dials

    def proof(self, side: str) -> bytes:
        """`dials` or `hears`: so that nobody's proof can be sent back to its maker."""
        return self._make_digest(side)

    def check(self, side: str, proof: bytes) -> None:
        """Raises `BadFrame`."""
        if not hmac.compare_digest(self._make_digest(side), proof):
            raise BadFrame("another secret")

    def key(self) -> bytes:
        return self._make_digest("tells")

    def _make_digest(self, label: str) -> bytes:
        secret = self._secret.reveal().encode()
        return hmac.digest(secret, label.encode() + b"\0" + self._hellos, sha256)


class FrameWriter:
    """The frames of one connection, one after the other."""

    def __init__(self, key: bytes) -> None:
        self._key, self._next = key, 0

    def frame(self, shares: Shares) -> bytes:
        """At most `MOST_ENTRIES`, those with the most in flight first."""
        told = sorted(shares.items(), key=lambda pair: -pair[1].sequences)[:MOST_ENTRIES]
        entries = b"".join([_ENTRY.pack(key, *share) for key, share in told])
        body = _NUMBER.pack(self._next) + entries
        head = _LENGTH.pack(len(body) + TAG_BYTES)
        self._next += 1
        return head + body + hmac.digest(self._key, head + body, sha256)


class FrameReader:
    """The other end of `FrameWriter`."""

    def __init__(self, key: bytes) -> None:
        self._key, self._next = key, 0

    @staticmethod
    def length(head: bytes) -> int:
        """Return the number of bytes after these `LENGTH_BYTES`. Raises `BadFrame`."""
        length: int = _LENGTH.unpack(head)[0]
        entries, rest = divmod(length - _NUMBER.size - TAG_BYTES, _ENTRY.size)
        if length > LONGEST or entries < 0 or rest:
            raise BadFrame(f"a frame of {length} bytes")
        return length

    def shares(self, head: bytes, rest: bytes) -> dict[bytes, PeerEngineLoad]:
        """Raises `BadFrame`; nothing of such a frame counts."""
        body, tag = rest[:-TAG_BYTES], rest[-TAG_BYTES:]
        if not hmac.compare_digest(hmac.digest(self._key, head + body, sha256), tag):
            raise BadFrame("a frame that was changed or sent before")
        if _NUMBER.unpack_from(body)[0] != self._next:
            raise BadFrame("a frame out of its turn")
        self._next += 1
        found: dict[bytes, PeerEngineLoad] = {}
        for key, *numbers in _ENTRY.iter_unpack(body[_NUMBER.size :]):
            share = PeerEngineLoad(*numbers)
            if key in found or not is_sound(share):
                raise BadFrame("numbers that no host has")
            found[key] = share
        return found
