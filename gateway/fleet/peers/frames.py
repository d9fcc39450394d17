"""Wire format between two hosts: a mutual proof, then load frames. No I/O.

    listener -> dialer   MAGIC, its id (16 bytes), a challenge (32)
    dialer -> listener   MAGIC, id and challenge, and HMAC-SHA256(secret, "dials" and both hellos)
    listener -> dialer   HMAC-SHA256(secret, "hears" and both hellos)
    dialer -> listener   frames: length (4), number (8), entries (72 each), tag (32)

Challenges are new per connection, so proofs and frames cannot be reused. A frame's tag covers its
sequence number and uses a key of the connection. A frame holds the whole load and is not encrypted.
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
    """Error: a frame that is malformed, or not from a host of this group."""


def hello_frame(own_id: bytes, challenge: bytes) -> bytes:
    return MAGIC + own_id + challenge


def id_of(greeting: bytes) -> bytes:
    """Return the host id in a hello, which is not yet proven. Raises `BadFrame`."""
    if len(greeting) != HELLO_BYTES or not greeting.startswith(MAGIC):
        raise BadFrame("no hello of this version")
    return greeting[len(MAGIC) : len(MAGIC) + ID_BYTES]


class Handshake:
    """Proofs and frame key of one connection, derived from the secret and both hellos."""

    def __init__(self, secret: Secret, hears: bytes, dials: bytes) -> None:
        self._secret, self._hellos = secret, hears + dials

    def proof(self, side: str) -> bytes:
        """Return the proof of a side, `dials` or `hears`.

        The proofs of the sides differ, so that a proof cannot be sent back to its author.
        """
        return self._make_digest(side)

    def check(self, side: str, proof: bytes) -> None:
        """Verify the proof of a side. Raises `BadFrame` if it does not match."""
        if not hmac.compare_digest(self._make_digest(side), proof):
            raise BadFrame("another secret")

    def key(self) -> bytes:
        return self._make_digest("tells")

    def _make_digest(self, label: str) -> bytes:
        secret = self._secret.reveal().encode()
        return hmac.digest(secret, label.encode() + b"\0" + self._hellos, sha256)


class FrameWriter:
    """Writer of the authenticated frames of one connection."""

    def __init__(self, key: bytes) -> None:
        self._key, self._next = key, 0

    def frame(self, shares: Shares) -> bytes:
        """Encode at most `MOST_ENTRIES` engines, those with the most sequences first."""
        told = sorted(shares.items(), key=lambda pair: -pair[1].sequences)[:MOST_ENTRIES]
        entries = b"".join([_ENTRY.pack(key, *share) for key, share in told])
        body = _NUMBER.pack(self._next) + entries
        head = _LENGTH.pack(len(body) + TAG_BYTES)
        self._next += 1
        return head + body + hmac.digest(self._key, head + body, sha256)


class FrameReader:
    """Reader of the frames that a `FrameWriter` wrote."""

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
        """Verify and decode a frame. Raises `BadFrame`; such a frame has no effect."""
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
