"""End of a forked process, without a last collection of garbage.

Python would take each object apart first, and so write to every page that is still shared with the
process that forked it: 60 to 80 ms of CPU for each process, most of what the stop of a host costs.
"""

import atexit
import os
import sys
import threading
from typing import NoReturn

FAILED = 1


def end_process(code: object) -> NoReturn:
    """End with the `code` of a `SystemExit`, after this process's threads and exit handlers.

    A file that somebody left open is not flushed. Where the standard streams cannot be, Python ends
    the process, as it tells of that.
    """
    vars(threading)["_shutdown"]()  # what `multiprocessing` does with its forks; pools end there
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
