"""What a loop waits for its journal, beside a process that writes and syncs to the same disk.

A loop opens and settles attempts at a steady rate, as a gateway does; another process writes blocks
to the same file system and syncs them. A stall is a call on the loop's thread that took over 1 ms
and gave up its core of its own accord: neighbours on the machine make none. Also the CPU time of
many records, eight callers at once and one. Run as `python tests/bench/bench_journal.py`; prints a
table and writes `build/bench-journal.json`.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT / "tests" / "ledger" / "journals"))

import disk_writer  # noqa: E402  (the path is set above)
from journal_load import opened, settled  # noqa: E402  (as above)

from ledger.journals.journal import JournalWriter  # noqa: E402  (as above)

STALL_S = 0.001


class TimedJournal:
    """A journal whose calls on this thread are timed."""

    def __init__(self, writer: JournalWriter) -> None:
        self._writer = writer
        self.calls_s: list[float] = []
        self.stalls = 0
        self.acked_s: list[float] = []

    async def request(self, number: int) -> None:
        self._timed(lambda: self._writer.append(opened(number)))
        await asyncio.sleep(0.005)
        begun = time.monotonic()
        self._timed(lambda: self._writer.append_ending(settled(number)))
        await self._writer.flush()
        self.acked_s.append(time.monotonic() - begun)

    def _timed(self, call) -> None:
        before, since = _waits(), time.perf_counter()
        call()
        took_s = time.perf_counter() - since
        self.calls_s.append(took_s)
        self.stalls += took_s > STALL_S and _waits() > before


def _waits() -> int:
    """How often this thread gave up its core to wait for something."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def open_journal(folder: Path, way: str, name: str) -> JournalWriter:
    writer = JournalWriter(folder / "journal", name)
    if not writer.attach(asyncio.get_running_loop(), way) and way != "calls":
        raise SystemExit("this file system has the way of calls alone")
    return writer


async def stalls(folder: Path, given: argparse.Namespace, mb_per_s: float) -> dict[str, float]:
    writer = open_journal(folder, given.way, f"w{mb_per_s:.0f}")
    watched, said, other = TimedJournal(writer), "0", None
    await watched.request(0)
    watched = TimedJournal(writer)
    if mb_per_s:
        other = disk_writer.start(folder, mb_per_s, given.seconds)
    since, tasks = time.monotonic(), []
    for number in range(1, int(given.per_s * given.seconds)):
        await asyncio.sleep(max(0.0, since + number / given.per_s - time.monotonic()))
        tasks.append(asyncio.create_task(watched.request(number)))
    await asyncio.gather(*tasks)
    if other is not None:
        said, _ = other.communicate()
    writer.close()
    return {
        "MB/s of the other": float(said),
        "stalls of the loop in 10 s": watched.stalls * 10 / given.seconds,
        "longest call, ms": max(watched.calls_s) * 1e3,
        "p99.9 of a call, ms": quantile(watched.calls_s, 0.999) * 1e3,
        "acknowledged p50, ms": quantile(watched.acked_s, 0.5) * 1e3,
        "acknowledged p99, ms": quantile(watched.acked_s, 0.99) * 1e3,
    }


async def cpu_us(folder: Path, given: argparse.Namespace, at_once: int) -> tuple[float, float]:
    """CPU for an open and a settle: of the loop's thread, and of the process.

    The kernel's own work for a write is the process's where io_uring or a thread does it, and
    nobody's where `io_submit` asks for a flush: between ways the loop's figure alone compares.
    """
    writer = open_journal(folder, given.way, f"c{at_once}")
    attempts = given.records * at_once // 16  # a lone caller waits for the disk each time
    numbers = iter(range(attempts))

    async def caller() -> None:
        for number in numbers:
            writer.append(opened(number))
            await writer.append_durable(settled(number))

    before = time.thread_time(), time.process_time()
    await asyncio.gather(*(caller() for _ in range(at_once)))
    after = time.thread_time(), time.process_time()
    writer.close()
    loop_us, process_us = ((b - a) * 1e6 / attempts for a, b in zip(before, after, strict=True))
    return loop_us, process_us


async def run(folder: Path, given: argparse.Namespace) -> dict[str, dict[str, float]]:
    figures = {}
    if given.seconds:
        figures["alone"] = await stalls(folder, given, 0.0)
        figures["beside"] = await stalls(folder, given, given.mb_per_s)
    for at_once in (8, 1):
        loop_us, process_us = await cpu_us(folder, given, at_once)
        figures[f"CPU, {at_once} at once"] = {
            "the loop's, us an attempt": loop_us, "the process's, us an attempt": process_us,
        }  # fmt: skip
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--per-s", type=float, default=200.0)
    parser.add_argument("--mb-per-s", type=float, default=200.0)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--way", choices=("kernel", "thread", "calls"), default="kernel")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="not on a tmpfs")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        figures = asyncio.run(run(Path(folder), given))
    for scene, values in figures.items():
        for name, value in values.items():
            print(f"{scene:<20} {name:<30} {value:10.2f}")
    out = ROOT / "build" / "bench-journal.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
