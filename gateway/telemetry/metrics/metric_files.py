"""The files that the metrics of a worker are mapped from, with a block behind each byte.

The library makes them with holes and writes into mapped memory: on a full disk a first value of a
label could end the worker by SIGBUS. A file that is there it takes as it is.
"""

import os
from pathlib import Path

from gateway.fleet.mapped_file import allocate_blocks

FILE_BYTES = 256 * 1024  # beyond that the library grows a file by itself
KINDS = ("counter", "histogram", "gauge_livesum")  # in the names of the library's files


def allocate_metric_files(directory: Path, worker: int) -> None:
    """Make the files of a worker. Raises `OSError` where the disk is full."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        file = os.open(directory / f"{kind}_{worker}.db", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            allocate_blocks(file, max(FILE_BYTES, os.fstat(file).st_size))
        finally:
            os.close(file)
