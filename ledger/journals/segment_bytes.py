"""The bytes of one segment: those of its file, followed by those still pending in memory."""

from collections.abc import Sequence
from pathlib import Path

from ledger.journals.layout import HEADER_BYTES, SegmentHeader, encode_header
from ledger.journals.pending import PendingGroup


class SegmentBytes:
    """The bytes of one segment. Raises `FileNotFoundError` without a file and pending bytes.

    `groups` are this segment's, in order. A group that the file covers to its end is skipped,
    because the file alone shows what became of it. `has_gaps`: pending frames after a gap count
    too; their numbers show the missing ones.
    """

    def __init__(
        self, path: Path, journal: str, groups: Sequence[PendingGroup], *, has_gaps: bool = False
    ) -> None:
        self._path = path
        self._parts: list[tuple[int, bytes]] = []
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            if not groups:
                raise
            size = 0
        if groups and size < HEADER_BYTES and (has_gaps or groups[0].offset == HEADER_BYTES):
            header = SegmentHeader(journal, groups[0].segment, 1, groups[0].first)
            self._parts.append((0, encode_header(header)))
            size = HEADER_BYTES
        for group in groups:
            if group.end > size and (has_gaps or group.offset <= size):
                self._parts.append((group.offset, group.data))
                size = group.end
        self.size = size

    def read(self, offset: int, limit_bytes: int) -> bytes:
        data = bytearray(self._read_file(offset, limit_bytes))
        for start, part in self._parts:
            since, until = max(start, offset), min(start + len(part), offset + limit_bytes)
            if since < until:
                data.extend(bytes(max(0, until - offset - len(data))))
                data[since - offset : until - offset] = part[since - start : until - start]
        return bytes(data)

    def _read_file(self, offset: int, limit_bytes: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                return file.read(limit_bytes)
        except FileNotFoundError:
            if not self._parts:
                raise
            return b""
