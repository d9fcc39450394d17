"""Blocks of a page run in one shell: what one sets the next has, and nothing is left behind."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.docsite.page_shell import BlockError, PageShell

ENVIRON = {"PATH": os.environ["PATH"]}


def test_what_a_block_sets_the_next_one_has(tmp_path: Path) -> None:
    with PageShell(tmp_path, ENVIRON) as shell:
        assert shell.run("export A=1\ncd /") == ""
        assert shell.run("echo $A; pwd") == "1\n/\n"


@pytest.mark.parametrize("text", ["false\necho after", "false | cat", "exit 3", "none-such"])
def test_a_block_that_fails_says_what_it_printed(tmp_path: Path, text: str) -> None:
    with PageShell(tmp_path, ENVIRON) as shell:
        assert shell.run("echo before") == "before\n"
        with pytest.raises(BlockError) as caught:
            shell.run(f"echo shown\n{text}")
    assert "shown" in str(caught.value)
    assert "after" not in str(caught.value).rpartition("shown\n")[2]


def test_what_goes_on_in_the_background_ends_with_the_shell(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    with PageShell(tmp_path, ENVIRON) as shell:
        shell.start("echo began; sh -c 'echo $$ >pid; sleep 600'", started.exists, 20.0)
        number = int(shell.run("until [ -s pid ]; do sleep 0.05; done; cat pid"))
        assert shell.log() == "began\n"
        os.kill(number, 0)
    listed = ["ps", "-o", "stat=", "-p", str(number)]
    alive = subprocess.run(listed, check=False, capture_output=True, text=True).stdout.strip()
    assert alive in {"", "Z"}


def test_what_never_gets_ready_is_an_error_with_its_log(tmp_path: Path) -> None:
    with PageShell(tmp_path, ENVIRON) as shell, pytest.raises(BlockError, match="why it failed"):
        shell.start("echo why it failed", lambda: False, 0.5)
