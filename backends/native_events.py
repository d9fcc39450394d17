"""Embedding of an answer's original bytes in its translation to chat.

The relay and the ledger read chat. A client of the target's own dialect receives the original: each
chat event carries it as a comment, each whole answer as a member. Both have a name that is random
per process, so that no target can forge it.
"""

import secrets
from typing import Final

MEMBER: Final = f"native_{secrets.token_hex(12)}"
_COMMENT: Final = f": {MEMBER} ".encode()
_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")  # between a document's members; in texts none is


def native_comment(document: bytes) -> bytes:
    """Return the comment line with a native event's data."""
    return b"%b%b\n" % (_COMMENT, document.translate(_SPACES))


def native_document(event: bytes) -> bytes | None:
    """Return the native event's data in a chat event, or `None`."""
    if not event.startswith(_COMMENT):
        return None
    return event[len(_COMMENT) : event.find(b"\n")]
