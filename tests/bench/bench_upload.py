"""What one upload takes from the loop that all live requests share, and from the disk behind it.

Prints, for a file of 90 MB in pieces of 64 KiB: the CPU time of the loop and of all threads, the
loop's longest single hold and how late it is, how long the stores of the chunks took, and what a
flush of 300 bytes on the same disk takes alone and beside it: every settled request waits for one.
Run it as `python tests/bench/bench_upload.py`.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from gateway.batches.batch_database import BatchDatabase  # noqa: E402  (the checkout's packages)
from gateway.batches.uploads import Upload, UploadLimits  # noqa: E402  (the checkout's packages)
from ledger.batches.files import FileRecord  # noqa: E402  (the checkout's packages)
from ledger.database import make_engine, migrate, sqlite_url  # noqa: E402  (the checkout's packages)

SIZE, PIECE = 90 * 1024 * 1024, 64 * 1024
BOUNDARY = b"cut"
HEAD = (
    b'--cut\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
    b'--cut\r\ncontent-disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n'
)
LINE = b'{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}\n'


def pieces() -> list[bytes]:
    text = HEAD + LINE * (SIZE // len(LINE)) + b"\r\n--cut--\r\n"
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


class Neighbour:
    """Writes and flushes as a journal does, a hundred times a second."""

    def __init__(self, folder: Path) -> None:
        self.took: list[float] = []
        self._file = os.open(folder / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            began = time.perf_counter()
            os.write(self._file, b"x" * 300)
            os.fdatasync(self._file)
            self.took.append(time.perf_counter() - began)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        os.close(self._file)

    def told(self) -> str:
        return spread(self.took)


async def lateness(took: list[float]) -> None:
    """How much later than asked for the loop comes back, a hundred times a second."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        took.append(time.perf_counter() - began - 0.01)


async def late(seconds: float | None, work: object = None) -> list[float]:
    took: list[float] = []
    task = asyncio.create_task(lateness(took))
    await (asyncio.sleep(seconds) if seconds else work)
    task.cancel()
    return took


def spread(took: list[float]) -> str:
    tenths = statistics.quantiles(took, n=10)
    return f"{1e3 * tenths[4]:.1f} ms at the median, {1e3 * tenths[8]:.1f} ms at p90"


async def measured(folder: Path) -> None:
    url = sqlite_url(folder / "ledger.db")
    migrate(url)
    stored, record = (
        BatchDatabase(make_engine(url)),
        FileRecord("f", "t", "k", "batch", "", 0, 2**60),
    )
    stores: list[float] = []
    append = stored.files.append

    def timed(*given: object, **named: object) -> bool:
        began = time.perf_counter()
        done = append(*given, **named)
        stores.append(time.perf_counter() - began)
        return done

    stored.files.append = timed
    holds: list[float] = []
    cut = pieces()

    async def body() -> AsyncIterator[bytes]:
        for piece in cut:
            await asyncio.sleep(0)
            began = time.thread_time()
            yield piece
            holds.append(time.thread_time() - began)

    upload = Upload(stored, record, UploadLimits(2**40, 2**40, 60))
    with Neighbour(folder) as alone:
        quiet = await late(4)
    whole = time.process_time()
    began, cpu = time.perf_counter(), time.thread_time()
    with Neighbour(folder) as beside:
        busy = await late(None, upload.receive(BOUNDARY, body()))
    took, loop = time.perf_counter() - began, time.thread_time() - cpu
    await stored.aclose()
    print(f"all threads: {1e3 * (time.process_time() - whole):.0f} ms of CPU")
    print(f"the loop is late alone: {spread(quiet)}; beside the upload: {spread(busy)}")
    print(f"a flush alone: {alone.told()}; beside the upload: {beside.told()}")
    print(f"90 MB in {took:.2f} s, of which the loop worked {1e3 * loop:.0f} ms")
    print(f"the longest hold of the loop: {1e3 * max(holds):.2f} ms of CPU")
    print(
        f"{len(stores)} stores of chunks: {1e3 * statistics.median(stores):.1f} ms at the median, "
        f"{1e3 * max(stores):.1f} ms at most"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measured(Path(folder)))


if __name__ == "__main__":
    main()
