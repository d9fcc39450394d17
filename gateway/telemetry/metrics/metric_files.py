"""Preallocated files for the mapped metrics of a worker.

The library creates sparse files and writes into mapped memory: on a full disk, the first value of a
label could kill the worker with SIGBUS. The library uses existing files as they are.
"""

import os
from pathlib import Path

from gateway.fleet.mapped_file import allocate_blocks

FILE_BYTES = 256 * 1024  # beyond that the library grows a file by itself
KINDS = ("counter", "histogram", "gauge_livesum")  # in the names of the library's files


def allocate_metric_files(directory: Path, worker: int) -> None:
    """Create the files of a worker. Raises `OSError` if the disk is full."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        file = os.open(directory / f"{kind}_{worker}.db", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            allocate_blocks(file, max(FILE_BYTES, os.fstat(file).st_size))
        finally:
            os.close(file)
