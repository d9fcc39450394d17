"""A worker's journal under load, as a process of its own that a bad disk may end.

    python journal_load.py FOLDER SAID SECONDS ATTEMPTS [SEGMENT-KIB] [WAY]

Eight callers at once open and settle attempts. Each line of `SAID` (on another disk) is what a
caller was told and when, by the monotonic clock: `open`, `ack`, or `no` with the refusal's words.
`WAY`: `kernel` or `thread` write beside the loop where the file system lets them, `calls` are the
loop's own. Ends with status 0 after so many attempts or seconds, or as soon as the journal is
given up.
"""

import asyncio
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from ledger.journals.journal import (  # noqa: E402  (the path is set above)
    JournalBroken,
    JournalError,
    JournalWriter,
)
from ledger.journals.records import (  # noqa: E402  (as above)
    AttemptOpened,
    AttemptSettled,
    TokenCounts,
)

AT_ONCE = 8
REFUSED_S = 0.01  # until a caller that was refused asks again


def opened(number: int) -> AttemptOpened:
    return AttemptOpened(
        f"r{number}.1", f"r{number}", 1, 1_780_000_000_000_000 + number, "k1", None, "search",
        "acme", "chat", True, "m", "up/m", "api", None, None, "up", "m", False, "default", "v1",
        "cheapest", None, 1, 1_000, 12,
    )  # fmt: skip


def settled(number: int, attempt_id: str = "") -> AttemptSettled:
    at_us = 1_780_000_000_000_000 + number + 1
    return AttemptSettled(
        attempt_id or f"r{number}.1", at_us, "finished", 200, TokenCounts(), "reported", 400,
        1, 2, error="e" * (number % 97),
    )  # fmt: skip


class Load:
    def __init__(self, writer: JournalWriter, said: Path, until_s: float, most: int) -> None:
        self._writer, self._until_s, self._most = writer, until_s, most
        self._said = said.open("a", buffering=1)
        self._number = 0

    def say(self, word: str, number: int, why: str = "") -> None:
        self._said.write(f"{word} {number} {time.monotonic():.9f} {why}\n")

    async def call(self) -> None:
        while self._number < self._most and time.monotonic() < self._until_s:
            self._number += 1
            number = self._number
            try:
                self._writer.append(opened(number))
                self.say("open", number)
                await self._writer.append_durable(settled(number))
                self.say("ack", number)
            except JournalBroken as broken:
                self.say("broken", number, str(broken))
                return
            except JournalError as refusal:
                self.say("no", number, str(refusal))
                await asyncio.sleep(REFUSED_S)


async def run(
    folder: Path, said: Path, seconds: float, attempts: int, segment_kib: int, way: str
) -> None:
    writer = JournalWriter(folder, "w0", segment_bytes=segment_kib * 1024)
    writer.attach(asyncio.get_running_loop(), way)
    load = Load(writer, said, time.monotonic() + seconds, attempts)
    await asyncio.gather(*(load.call() for _ in range(AT_ONCE)))
    writer.close()


def main(
    folder: str, said: str, seconds: str, attempts: str, segment_kib: str = "64",
    way: str = "kernel",
) -> None:  # fmt: skip
    asyncio.run(run(Path(folder), Path(said), float(seconds), int(attempts), int(segment_kib), way))


if __name__ == "__main__":
    main(*sys.argv[1:])
