"""A folder of its own for the sockets of one life of an engine, gone with that life.

vLLM's processes talk over sockets that they put into the machine's temporary folder, and a killed
process takes none of its away: at a restart a day they pile up for ever. A link beside the log
names the folder, so that the next life removes what a life whose end nobody saw has left. It lies
in the temporary folder all the same: a socket's whole path has 107 bytes.
"""

import shutil
import tempfile
from pathlib import Path

VARIABLE = "VLLM_RPC_BASE_PATH"
_PREFIX = "breakeven-engine-"


def make_sockets(log: Path) -> Path:
    """Return an empty folder for the life that writes this log; its owner alone may enter."""
    remove_sockets(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _link(log).symlink_to(folder)
    return folder


def remove_sockets(log: Path) -> None:
    """All of it, if it is there and is ours."""
    link = _link(log)
    if not link.is_symlink():
        return
    folder = link.readlink()
    if folder.name.startswith(_PREFIX):  # whoever may write beside the log names no other folder
        shutil.rmtree(folder, ignore_errors=True)
    link.unlink()


def _link(log: Path) -> Path:
    return log.with_name(log.name + ".sockets")
