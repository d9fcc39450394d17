"""Check for JSON that is nested deeper than the gateway reads.

Up to Python 3.13 the decoder rejects about 1,000 levels. Since 3.14 it continues until the C stack
is full, tens of thousands of levels later, while Python functions still end at 1,000.
"""

import re
import sys
from itertools import accumulate

LEVELS_LIMIT = 500
IS_NEEDED = sys.version_info >= (3, 14)

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]


def is_too_deep(text: bytes, limit: int = LEVELS_LIMIT) -> bool:
    """Return whether valid JSON has more than `limit` nested arrays and objects."""
    if text.count(b"[") + text.count(b"{") <= limit:  # the usual case, within microseconds
        return False
    brackets = _STRING.sub(b"", text).translate(None, _OTHERS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > limit
