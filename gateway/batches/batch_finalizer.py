"""Finalizer of batches: from `in_progress` or `cancelling` to the end, with output files.

The calls block on the database: run them in a thread. If a writer dies, its files stay invisible
and are deleted later. The next writer creates new ones; only the final update makes files visible.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway.batches.batch_usage import BatchUsage
from gateway.batches.shapes import CANCELLED, EXPIRED, unanswered_line
from ledger.batches.files import CHUNK_BYTES, FileRecord, FileStore
from ledger.batches.lines import LineStore
from ledger.batches.store import CANCELLING, FINALIZING, BatchRecord, BatchStore

CLOSED = 200  # lines per transaction
_US = 1_000_000
OUT_US = 15 * 60 * _US  # OpenAI takes up to ten minutes to cancel a batch


@dataclass(frozen=True, slots=True)
class BatchFinalizer:
    """Finalizer of the batches that this owner has leased."""

    batches: BatchStore
    lines: LineStore
    files: FileStore
    owner: str
    now_us: Callable[[], int]
    new_id: Callable[[str], str]
    keep_us: int  # how long output files are kept

    def start_finalizing(self, record: BatchRecord) -> bool:
        """Move the batch to `finalizing` once none of its lines can be answered any more."""
        now_us = self.now_us()
        over = record.status == CANCELLING or now_us >= record.expires_us
        if not over and record.completed + record.failed < record.total:
            return False
        if over and self.lines.running(record.id, now_us):
            return False  # runners are cancelling them
        if over and now_us < _ended_us(record) + OUT_US and self.lines.out(record.id):
            return False  # answers that a provider has by now still arrive
        values: dict[str, Any] = {"status": FINALIZING, "finalizing_us": now_us}
        if record.status != CANCELLING and self.lines.undone(record.id, 1):
            values["expired_us"] = now_us  # so that it ends as expired
        return self.batches.move(record.id, self.owner, (record.status,), **values)

    def end(self, record: BatchRecord, hold: Callable[[], None]) -> None:
        """Write the files of a `finalizing` batch and end it; `hold` renews the lease or raises."""
        self._close(record, hold)
        usage = BatchUsage()
        output, error = (
            self._write(record, count(self.lines.answers(record.id, ok=ok)), hold, word)
            for ok, word, count in ((True, "output", usage.count), (False, "error", iter))
        )
        if record.cancelling_us is not None:
            status = "cancelled"
        else:
            status = "completed" if record.expired_us is None else "expired"
        values: dict[str, Any] = {"status": status, f"{status}_us": self.now_us()}
        values["usage"] = usage.document()
        values["output_file_id"] = output[0] if output else None
        values["error_file_id"] = error[0] if error else None
        self.batches.end(record.id, self.owner, list(filter(None, (output, error))), **values)

    def _close(self, record: BatchRecord, hold: Callable[[], None]) -> None:
        """Write an error line for each line without an answer."""
        code = EXPIRED if record.cancelling_us is None else CANCELLED
        while undone := self.lines.undone(record.id, CLOSED):
            hold()
            answers = [
                (number, unanswered_line(record.id, number, custom_id, code=code))
                for number, custom_id in undone
            ]
            self.lines.close(record.id, answers)

    def _write(
        self, record: BatchRecord, answers: Iterator[bytes], hold: Callable[[], None], word: str
    ) -> tuple[str, int] | None:
        """Return (id, size) of a new, still invisible file; `None` if it would have no lines."""
        file_id, size = "", 0
        for number, chunk in enumerate(_chunks(answers)):
            hold()
            if not file_id:
                file_id = self._create_output_file(record, f"{record.id}_{word}.jsonl")
            self.files.append(file_id, number, chunk)
            size += len(chunk)
        return (file_id, size) if file_id else None

    def _create_output_file(self, record: BatchRecord, name: str) -> str:
        file_id, now_us = self.new_id("file-"), self.now_us()
        kept_us = self.keep_us if record.output_seconds is None else record.output_seconds * _US
        record_of = FileRecord(
            file_id, record.team_id, record.key_id, "batch_output", name,
            created_us=now_us, expires_us=now_us + kept_us,
        )  # fmt: skip
        self.files.create(record_of)
        return file_id


def _chunks(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines, joined by line breaks, in chunks; at most one chunk is in memory."""
    held = bytearray()
    for line in lines:
        held += line + b"\n"
        while len(held) >= CHUNK_BYTES:
            yield bytes(held[:CHUNK_BYTES])
            del held[:CHUNK_BYTES]
    if held:
        yield bytes(held)


def _ended_us(record: BatchRecord) -> int:
    """Return the time from which no more lines of the batch are processed."""
    ends = record.cancelling_us
    return record.expires_us if ends is None else min(ends, record.expires_us)
