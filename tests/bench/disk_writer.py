"""A process that writes blocks to a file and syncs them, as a neighbour on the same disk does.

Run as `disk_writer.py FILE BYTES_PER_S SECONDS`: it prints the megabytes a second that it wrote and
synced, and removes its file. A disk that is slower than asked sets the pace.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

BLOCK = 1024 * 1024
SYNC_EVERY = 8  # blocks
FILE_BLOCKS = 256


def start(folder: Path, mb_per_s: float, seconds: float) -> subprocess.Popen[str]:
    """The process; its standard output is the rate in MB/s that it reached."""
    words = [str(Path(__file__).resolve()), str(folder / "other"), str(mb_per_s * 1e6)]
    return subprocess.Popen(
        [sys.executable, *words, str(seconds)], stdout=subprocess.PIPE, text=True
    )


def write(path: Path, bytes_per_s: float, seconds: float) -> float:
    """Blocks at this pace for so long; the rate reached in MB/s."""
    block, since, count = os.urandom(BLOCK), time.monotonic(), 0
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    while time.monotonic() < since + seconds:
        os.write(file, block)
        count += 1
        if count % SYNC_EVERY == 0:
            os.fsync(file)
        if count % FILE_BLOCKS == 0:
            os.close(file)
            path.unlink()
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        time.sleep(max(0.0, since + count * BLOCK / bytes_per_s - time.monotonic()))
    os.close(file)
    path.unlink()
    return count * BLOCK / 1e6 / (time.monotonic() - since)


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
