"""Temporary folder for the sockets of one engine process, removed when the process ends.

vLLM's processes communicate over sockets in the machine's temporary folder. A killed process leaves
its sockets behind, and with a restart a day they accumulate. A symbolic link beside the log names
the folder, so that the next start removes what a crash has left. The folder is below the temporary
folder, because a socket's whole path has at most 107 bytes.
"""

import shutil
import tempfile
from pathlib import Path

VARIABLE = "VLLM_RPC_BASE_PATH"
_PREFIX = "breakeven-engine-"


def make_sockets(log: Path) -> Path:
    """Make an empty folder for the process that writes this log. Only its owner has access.

    An earlier folder of the same log is removed.
    """
    remove_sockets(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _link(log).symlink_to(folder)
    return folder


def remove_sockets(log: Path) -> None:
    """Remove the folder of this log and its link, if they exist.

    Only folders made by `make_sockets` are removed.
    """
    link = _link(log)
    if not link.is_symlink():
        return
    folder = link.readlink()
    if folder.name.startswith(_PREFIX):  # a forged link removes nothing else
        shutil.rmtree(folder, ignore_errors=True)
    link.unlink()


def _link(log: Path) -> Path:
    return log.with_name(log.name + ".sockets")
