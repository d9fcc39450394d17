"""Validator of batches: reads the input file into rows, to `in_progress` or `failed`.

The calls block on the database: run them in a thread. An interrupted validation starts again.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator

from gateway.batches.batch_spill_policy import ENDPOINTS
from gateway.batches.inputlines import InputFault, InputLines
from ledger.batches.files import FileRecord, FileStore
from ledger.batches.lines import LineStore, NewLine
from ledger.batches.store import VALIDATING, BatchRecord, BatchStore

ADDED = 200  # lines per transaction; small, so that others do not wait long for the database
ADDED_BYTES = 1024 * 1024
FAULTS = 100  # maximum faults reported


class LeaseLost(Exception):
    """Error: another runner has leased the batch."""


class _FileGone(Exception):
    """Error: the file was deleted during the read, so its end says nothing about its content."""


class BatchValidator:
    """Validator of one batch that this owner has leased; `hold` renews the lease or raises."""

    def __init__(
        self,
        batches: BatchStore,
        lines: LineStore,
        files: FileStore,
        *,
        lines_limit: int,
        line_bytes: int,
    ) -> None:
        self._batches = batches
        self._lines = lines
        self._files = files
        self._lines_limit = lines_limit
        self._line_bytes = line_bytes

    def run(
        self, record: BatchRecord, owner: str, *, known: Callable[[str], bool],
        hold: Callable[[], None], now_us: Callable[[], int],
    ) -> None:  # fmt: skip
        self._lines.delete_lines(record.id)  # rows of an interrupted validation
        try:
            total, faults = self._read(record, InputLines(record.endpoint, known), hold)
        except _FileGone:
            message = "The input file is not there any more."
            total, faults = 0, [InputFault("file_not_found", message)]
        if faults or not total:
            faults = faults or [InputFault("empty_file", "The input file holds no request.")]
            self._lines.delete_lines(record.id)
            told = [fault.document() for fault in faults[:FAULTS]]
            values = {"status": "failed", "failed_us": now_us(), "errors": told}
            self._batches.move(record.id, owner, (VALIDATING,), **values)
            return
        values = {"status": "in_progress", "in_progress_us": now_us(), "total": total}
        if not self._batches.move(record.id, owner, (VALIDATING,), **values):
            self._lines.delete_lines(record.id)  # the batch was cancelled during the validation

    def _read(
        self, record: BatchRecord, reader: InputLines, hold: Callable[[], None]
    ) -> tuple[int, list[InputFault]]:
        """Return the number of requests in a file and its faults; rows are added until a fault."""
        total, size = 0, 0
        faults: list[InputFault] = []
        ready: list[NewLine] = []
        kept = record.endpoint not in ENDPOINTS
        file = self._files.find(record.input_file_id, record.team_id)
        if file is None:
            raise _FileGone
        for number, whole in enumerate(self._texts(file), start=1):
            text = whole.removeprefix(BOM_UTF8) if whole and number == 1 else whole
            found = _too_long(number, self._line_bytes) if text is None else None
            line = found or reader.read(text or b"", number)
            if isinstance(line, InputFault):
                faults.append(line)
                if len(faults) >= FAULTS:
                    break
            elif line is not None:
                total += 1
                if total > self._lines_limit:
                    message = f"A batch may hold {self._lines_limit} requests."
                    return total, [*faults, InputFault("too_many_requests", message, number)]
                ready.append(line)
                size += len(line.body)
            if len(ready) >= ADDED or size >= ADDED_BYTES:
                hold()
                if not faults:
                    self._lines.add(record.id, ready, kept=kept)
                ready, size = [], 0
        if not faults:
            self._lines.add(record.id, ready, kept=kept)
        return total, faults

    def _texts(self, file: FileRecord) -> Iterator[bytes | None]:
        """Yield the file's lines; `None` for a line longer than a request may be.

        Raises `_FileGone` if the file ends before its size; the incomplete last line is not
        yielded.
        """
        held, too_long, seen = b"", False, 0
        for chunk in self._files.chunks(file.id):
            seen += len(chunk)
            *whole, rest = (held + chunk).split(b"\n")
            for text in whole:
                yield None if too_long or len(text) > self._line_bytes else text
                too_long = False
            too_long = too_long or len(rest) > self._line_bytes
            held = b"" if too_long else rest
        if seen != file.bytes:
            raise _FileGone
        if held or too_long:
            yield None if too_long else held


def _too_long(number: int, limit: int) -> InputFault:
    return InputFault("line_too_long", f"The line is longer than {limit} bytes.", number)
