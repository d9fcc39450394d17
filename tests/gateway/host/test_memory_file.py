"""Files in memory: another process reads what was put there."""

import os
import subprocess

from gateway.host.memory_file import memory_file


def test_another_process_reads_it_and_no_folder_has_it() -> None:
    with memory_file(b"content") as file:
        shown = subprocess.run(
            ["cat", f"/proc/self/fd/{file.fileno()}"],
            pass_fds=[file.fileno()], capture_output=True, check=True,
        )  # fmt: skip
        assert shown.stdout == b"content"
        assert os.readlink(f"/proc/self/fd/{file.fileno()}").startswith("/memfd:")  # noqa: PTH115  (no file of that name)
