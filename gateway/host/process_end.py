"""End of a forked process without a final garbage collection.

Python would first destroy each object, and so write to every page still shared with the parent: 60
to 80 ms of CPU for each process, most of the cost of stopping a host.
"""

import atexit
import os
import sys
import threading
from typing import NoReturn

FAILED = 1


def end_process(code: object) -> NoReturn:
    """Exit with the `code` of a `SystemExit`, after this process's threads and exit handlers.

    Files left open are not flushed. If the standard streams cannot be flushed, Python ends the
    process, which reports that.
    """
    vars(threading)["_shutdown"]()  # as `multiprocessing` does in its forks; thread pools end there
    atexit._run_exitfuncs()  # noqa: SLF001  (Python has no other name for it)
    status = FAILED
    if code is None or isinstance(code, int):
        status = (code or 0) & 0xFF
    else:
        print(code, file=sys.stderr)  # noqa: T201  (as Python does)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # the command was given none
                stream.flush()
    except (OSError, ValueError):
        sys.exit(status)
    os._exit(status)
