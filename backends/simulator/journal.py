"""The requests that a simulated server has served: one entry each, append-only.

Tests compare it with the client's results and with the ledger. `completion_tokens` are the
generated tokens, also of aborted requests.
"""

from collections import deque
from pathlib import Path

import msgspec

ENTRIES_LIMIT = 100_000


class RequestEntry(msgspec.Struct, frozen=True):
    """One request. `status` is finished, aborted, refused or broken.

    `request_id` is the caller's header.
    """

    id: str
    request_id: str
    path: str
    model: str
    stream: bool
    status: str
    http_status: int
    started_s: float  # epoch
    duration_s: float
    ttft_s: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    sent_tokens: int = 0
    finish_reasons: tuple[str, ...] = ()


class RequestJournal:
    """The last entries in memory, and all entries in a file if one is named."""

    def __init__(self, path: Path | None = None) -> None:
        self._entries: deque[RequestEntry] = deque(maxlen=ENTRIES_LIMIT)
        self._file = path.open("ab", buffering=0) if path is not None else None

    def append(self, entry: RequestEntry) -> None:
        self._entries.append(entry)
        if self._file is not None:
            self._file.write(msgspec.json.encode(entry) + b"\n")

    def lines(self) -> bytes:
        """Return the entries as JSON lines, oldest first."""
        return b"".join(msgspec.json.encode(entry) + b"\n" for entry in self._entries)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
