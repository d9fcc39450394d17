"""Children: restarted with back-off, stopped at once or after grace, never left behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.host import children
from gateway.host.children import ChildCommand, ChildProcess

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(600)
"""


@pytest.fixture
def started(tmp_path: Path):
    """Starts children of a line of Python; ends what a test leaves."""
    made: list[tuple[ChildProcess, asyncio.Task[None], list]] = []

    def start(code: str, **fields) -> tuple[ChildProcess, list]:
        exits: list[tuple[str, int]] = []
        log = tmp_path / "logs" / f"{len(made)}.log"
        command = ChildCommand(
            "child", [sys.executable, "-c", code], log, dict(os.environ), **fields
        )
        child = ChildProcess(command, clock=Clock(), on_exit=lambda *exit_: exits.append(exit_))
        made.append((child, asyncio.get_running_loop().create_task(child.run()), exits))
        return child, exits

    yield start
    for child, _, _ in made:
        if child.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)


async def until(check, patience_s: float = 20.0):
    async with asyncio.timeout(patience_s):
        while not (value := check()):  # noqa: ASYNC110  (other processes set no event)
            await asyncio.sleep(0.01)
    return value


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def up(child: ChildProcess) -> int:
    await until(lambda: child.command.log.exists() and "up" in child.command.log.read_text())
    assert child.pid is not None
    return child.pid


async def test_a_death_is_told_and_the_child_comes_back(started) -> None:
    child, exits = started(SLEEP)
    first = await up(child)
    os.kill(first, signal.SIGKILL)
    second = await until(lambda: child.pid if child.pid not in (None, first) else None)
    assert exits == [("child", -signal.SIGKILL)]
    assert alive(second)
    await child.stop(5)
    assert not alive(second)
    assert exits[1:] == [("child", -signal.SIGTERM)]


async def test_one_that_the_machine_has_no_room_for_is_started_when_it_has(
    started, tmp_path: Path, caplog
) -> None:
    """A disk that is full, a process that is not to be had: it was never tried again."""
    (tmp_path / "logs").touch()
    child, exits = started(SLEEP)
    await until(lambda: len(exits) == 2)
    assert exits == [("child", children.NOT_STARTED)] * 2
    assert (child.lives, child.pid) == (0, None)
    assert (
        f"process was not started name=child error=[Errno 17] File exists: '{tmp_path}/logs'"
        in caplog.text
    )
    (tmp_path / "logs").unlink()
    await up(child)
    assert child.lives == 1
    await child.stop(5)


async def test_who_rests_is_down_until_it_is_woken_and_that_is_no_crash(started) -> None:
    child, exits = started(SLEEP)
    first = await up(child)
    child.pause()
    await until(lambda: exits == [("child", -signal.SIGKILL)])
    await asyncio.sleep(0.3)  # longer than its back-off
    assert child.pid is None
    assert not alive(first)
    child.resume()
    second = await until(lambda: child.pid)
    assert alive(second)
    assert (child.crashes, child.lives) == (0, 2)
    await child.stop(5)


async def test_who_rests_can_be_stopped(started) -> None:
    child, exits = started(SLEEP)
    await up(child)
    child.pause()
    await until(lambda: exits)
    await child.stop(5)
    assert len(exits) == 1


async def test_back_off_doubles_and_a_steady_life_forgets_it(started, monkeypatch) -> None:
    pauses: list[float] = []
    wait_for = asyncio.wait_for

    async def counted(work, timeout_s):
        pauses.append(timeout_s)
        return await wait_for(work, 0.001)

    monkeypatch.setattr(children.asyncio, "wait_for", counted)
    child, _ = started("raise SystemExit(3)")
    await until(lambda: len(pauses) >= 8)
    assert pauses[:8] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    monkeypatch.setattr(children, "STEADY_S", -1.0)  # every life counts as long
    seen = len(pauses)
    await until(lambda: len(pauses) > seen + 2)
    assert pauses[-1] == 0.2
    await child.stop(5)


async def test_who_ignores_sigterm_is_killed_after_grace(started) -> None:
    child, exits = started(STUBBORN)
    pid = await up(child)
    await child.stop(0.3)
    assert not alive(pid)
    assert exits == [("child", -signal.SIGKILL)]


async def test_stop_while_starting_leaves_nothing(started) -> None:
    child, exits = started(SLEEP)
    await asyncio.sleep(0)  # `run` has begun and waits for the process to be made
    await child.stop(5)
    assert child.pid is None
    assert exits == [("child", -signal.SIGTERM)]


async def test_stop_during_back_off_starts_nothing(started) -> None:
    child, exits = started("raise SystemExit(3)")
    await until(lambda: exits)
    await child.stop(5)
    assert child.pid is None
    assert len(exits) <= 2


async def test_a_child_that_was_never_run_can_be_stopped(tmp_path: Path) -> None:
    child = ChildProcess(
        ChildCommand("x", ["x"], tmp_path / "x"), clock=Clock(), on_exit=lambda *_: None
    )
    await child.stop(5)


async def test_the_environment_and_descriptors_are_what_was_said(started, monkeypatch) -> None:
    read, write = os.pipe()
    child, _ = started(f"import os; os.write({write}, b'up'); {SLEEP}", descriptors=(write,))
    await up(child)
    assert os.read(read, 10) == b"up"
    assert os.getsid(child.pid) == child.pid  # a terminal's Ctrl-C does not reach it
    await child.stop(5)
    os.close(read)
    os.close(write)


PARENT = """
import asyncio, os, sys
from pathlib import Path
from gateway.host import children
from gateway.clock import Clock

async def main():
    log = Path(sys.argv[1])
    command = children.ChildCommand("c", [sys.executable, "-c", sys.argv[2]], log, dict(os.environ))
    child = children.ChildProcess(command, clock=Clock(), on_exit=lambda *_: None)
    task = asyncio.create_task(child.run())
    while not (log.exists() and "up" in log.read_text()):
        await asyncio.sleep(0.01)
    print(child.pid, flush=True)
    await task

if sys.argv[3] == "unprotected":
    children.die_with_parent = lambda: None
asyncio.run(main())
"""


@pytest.mark.parametrize(("kind", "left"), [("protected", False), ("unprotected", True)])
async def test_the_death_of_the_parent_ends_its_children(
    tmp_path: Path, kind: str, *, left: bool
) -> None:
    """Also by SIGKILL. Without the kernel's help the child would live on (the control)."""
    script = textwrap.dedent(PARENT)
    arguments = [sys.executable, "-c", script, str(tmp_path / "log"), SLEEP, kind]
    root = Path(children.__file__).parents[2]
    parent = await asyncio.create_subprocess_exec(
        *arguments, stdout=asyncio.subprocess.PIPE, cwd=root
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    if left:
        await asyncio.sleep(0.5)
        assert alive(pid)
        os.kill(pid, signal.SIGKILL)
    await until(lambda: not alive(pid))


SHARED = """
import asyncio, sys
from gateway.clock import Clock
from gateway.host.children import ChildCommand, ChildProcess

async def main():
    words = "import sys; print('said', flush=True); print('told', file=sys.stderr, flush=True)"
    command = ChildCommand("child", [sys.executable, "-c", words], None)
    child = ChildProcess(command, clock=Clock(), on_exit=lambda *_: running.cancel())
    running = asyncio.ensure_future(child.run())
    await asyncio.wait({running})

asyncio.run(main())
"""


def test_without_a_file_a_child_says_all_on_the_output_of_its_parent():
    done = subprocess.run([sys.executable, "-c", SHARED], check=True, capture_output=True)
    assert sorted(done.stdout.split()) == [b"said", b"told"]
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("argv", "module", "words"),
    [
        ([sys.executable, "-m", "a.b", "x", "-m"], "a.b", ["x", "-m"]),
        ([sys.executable, "-m", "a"], "a", []),
        ([sys.executable, "-m"], None, ["-m"]),
        ([sys.executable, "-c", "pass"], None, ["-c", "pass"]),
        (["/bin/true", "-m", "a"], None, ["-m", "a"]),
        (["/bin/true"], None, []),
    ],
)
def test_a_command_says_which_module_it_runs(argv, module, words) -> None:
    command = ChildCommand("c", argv, None)
    assert (command.module, [*command.words]) == (module, words)
