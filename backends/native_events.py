"""An answer's own bytes beside its translation: a stream of Messages inside one of chat.

Relays and books read chat. A client that speaks its target's own dialect gets what the target said,
whole: each event of chat carries the native one as a comment, each answer in one piece as a member.
Both have a name that is drawn when the process starts, so that no target can write it itself.
"""

import secrets
from typing import Final

MEMBER: Final = f"native_{secrets.token_hex(12)}"
_COMMENT: Final = f": {MEMBER} ".encode()
_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")  # between a document's members; in texts none is


def native_comment(document: bytes) -> bytes:
    """Return the line that carries a native event's data."""
    return b"%b%b\n" % (_COMMENT, document.translate(_SPACES))


def native_document(event: bytes) -> bytes | None:
    """Return the data of the native event that an event of chat carries; None without one."""
    if not event.startswith(_COMMENT):
        return None
    return event[len(_COMMENT) : event.find(b"\n")]
