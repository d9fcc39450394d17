"""Children that are forked are as those that are executed: same words, environment, files, ends."""

import asyncio
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.clock import Clock
from gateway.host import fork_client
from gateway.host.children import ChildCommand, ChildProcess
from gateway.host.fork_client import ForkClient, listening
from gateway.host.fork_server import ForkNews
from gateway.host.preload import CHANNEL

ROOT = Path(__file__).resolve().parents[3]
SERVER = """
import os, signal, socket, sys
from gateway.host import fork_server
signal.signal(signal.SIGINT, signal.default_int_handler)  # else as in the background
{fault}
fork_server.run(socket.socket(fileno={descriptor}), os.getppid())
"""
PROGRAM = """
import json, os, signal, sys, time

COERCED = ("_", "LC_CTYPE")  # by the shell, and by Python at a start without a language

def opens(number):
    try:
        return os.fstat(number) is not None
    except OSError:
        return False  # of the list itself

def main():
    how = sys.argv[1]
    if how == "tell":
        os.write(int(sys.argv[2]), b"told")
        print(json.dumps({
            "words": sys.argv[1:],
            "environ": {n: v for n, v in os.environ.items() if n not in COERCED},
            "input": sys.stdin.read(), "folder": os.getcwd(), "leads": os.getsid(0) == os.getpid(),
            "child": str(signal.getsignal(signal.SIGCHLD)), "umask": os.umask(0),
            "files": [n for n in map(int, os.listdir("/proc/self/fd")) if opens(n)],
        }))
    elif how == "wait":
        print("up", flush=True)
        time.sleep(600)
    elif how == "die":
        os.kill(os.getpid(), int(sys.argv[2]))
    elif how == "raise":
        raise RuntimeError("as it comes")
    else:
        sys.exit(int(how))

if __name__ == "__main__":
    main()
"""


class Bench:
    """A fork server of its own, and commands of one program."""

    def __init__(self, folder: Path, fault: str = "", begun_with: tuple[int, ...] = ()) -> None:
        self.folder = folder
        (folder / "forked_program.py").write_text(PROGRAM)
        self.environ = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}:{ROOT}"}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = SERVER.format(descriptor=theirs.fileno(), fault=fault)
        self.server = subprocess.Popen(
            [sys.executable, "-c", code], env=self.environ,
            pass_fds=[theirs.fileno(), *begun_with], stdin=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        self.client = ForkClient(ours, self.server.pid)
        self._logs = 0

    def command(self, *words: str, descriptors: tuple[int, ...] = ()) -> ChildCommand:
        self._logs += 1
        log = self.folder / f"{self._logs}.log"
        argv = [sys.executable, "-m", "forked_program", *words]
        return ChildCommand("child", argv, log, self.environ | {"ONLY": words[0]}, descriptors)

    def child(self, command: ChildCommand, *, forked: bool = True) -> tuple[ChildProcess, list]:
        ends: list[tuple[str, int]] = []
        child = ChildProcess(
            command, clock=Clock(), on_exit=lambda *end: ends.append(end),
            forks=self.client if forked else None,
        )  # fmt: skip
        return child, ends

    async def close(self) -> None:
        await self.client.end()
        self.server.wait(10)

    async def code(self, *words: str) -> int:
        process = await self.client.start(self.command(*words), 2)
        return await process.wait()


def is_there(pid: int) -> bool:
    """Also one that ended and was not waited for."""
    return Path(f"/proc/{pid}").exists()


@pytest.fixture
async def make_bench(tmp_path: Path) -> AsyncIterator[Callable[..., Bench]]:
    """A bench ends with its test, also where that fails."""
    async with AsyncExitStack() as made:

        def make(fault: str = "", begun_with: tuple[int, ...] = ()) -> Bench:
            bench = Bench(tmp_path, fault, begun_with)
            made.push_async_callback(bench.close)
            bench.client.begin()
            return bench

        yield make


@pytest.fixture
async def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


async def until(check, patience_s: float = 20.0):
    async with asyncio.timeout(patience_s):
        while not (value := check()):  # noqa: ASYNC110  (other processes set no event)
            await asyncio.sleep(0.01)
    return value


async def test_it_finds_itself_as_a_program_of_its_own_would(bench: Bench) -> None:
    told = []
    for forked in (True, False):
        reads, writes = os.pipe()
        command = bench.command("tell", str(writes), "two words", descriptors=(writes,))
        child, ends = bench.child(command, forked=forked)
        running = asyncio.create_task(child.run())
        await until(lambda ends=ends: ends)
        await child.stop(5)
        await running
        os.close(writes)
        with os.fdopen(reads, "rb") as file:
            assert file.read() == b"told"
        said = json.loads(command.log.read_text().splitlines()[0])
        said["words"][1] = ""  # another pipe
        assert sorted(said.pop("files")) == [0, 1, 2, writes]
        told.append(said)
    assert told[0] == told[1]
    assert told[0]["environ"]["ONLY"] == "tell"


@pytest.mark.parametrize(
    ("words", "code"),
    [(("0",), 0), (("7",), 7), (("raise",), 1), (("die", "9"), -9), (("die", "15"), -15)],
)
async def test_how_it_ended_is_told(bench: Bench, words: tuple[str, ...], code: int) -> None:
    assert await bench.code(*words) == code


async def test_many_at_once_are_all_heard_of(bench: Bench) -> None:
    codes = list(range(40))
    waiting = [await bench.client.start(bench.command("wait"), 2) for _ in range(9)]
    assert await asyncio.gather(*(bench.code(str(code)) for code in codes)) == codes
    for place, process in enumerate(waiting):
        process.send_signal(signal.SIGKILL if place % 2 else signal.SIGTERM)
    ended = [await process.wait() for process in waiting]
    assert ended == [-signal.SIGKILL if place % 2 else -signal.SIGTERM for place in range(9)]


async def test_it_is_ended_as_any_other(bench: Bench) -> None:
    child, ends = bench.child(bench.command("wait"))
    running = asyncio.create_task(child.run())
    await until(lambda: child.command.log.exists() and child.command.log.read_text() == "up\n")
    child.restart()
    await until(lambda: child.lives == 2)
    await until(lambda: child.command.log.read_text() == "up\nup\n")
    await child.stop(5)
    await running
    assert ends == [("child", -signal.SIGKILL), ("child", -signal.SIGTERM)]


async def test_without_the_fork_server_its_children_are_executed(bench: Bench) -> None:
    child, ends = bench.child(bench.command("wait"))
    running = asyncio.create_task(child.run())
    await until(lambda: child.command.log.exists() and child.command.log.read_text() == "up\n")
    bench.server.kill()
    await until(lambda: ends)
    assert ends == [("child", -signal.SIGTERM)]  # the kernel ends what it had forked
    assert not bench.client.works
    await until(lambda: child.command.log.read_text() == "up\nup\n")
    await child.stop(5)
    await running


async def test_where_the_machine_has_no_room_it_is_tried_again(make_bench) -> None:
    fault = """
def refuse(forks=[os.fork]):
    os.fork = forks[0]
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = refuse
"""
    bench = make_bench(fault)
    with pytest.raises(OSError, match="temporarily unavailable"):
        await bench.code("0")
    assert await bench.code("7") == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
async def test_a_signal_to_a_whole_host_ends_none_of_its_children(bench: Bench, number) -> None:
    """Each obeys its own; the control is the child, which as any program does not outlive it."""
    process = await bench.client.start(bench.command("wait"), 2)
    bench.server.send_signal(number)
    assert await bench.code("7") == 7
    assert process.returncode is None
    process.send_signal(number)
    async with asyncio.timeout(20):
        assert await process.wait() in (-number, 1)  # 1: Python's KeyboardInterrupt


@pytest.mark.parametrize("ordering", [True, False])
async def test_one_that_is_stopped_is_done_without(bench: Bench, monkeypatch, ordering) -> None:
    assert await bench.code("0") == 0  # it is there
    monkeypatch.setattr(fork_client, "ANSWER_S", 1.0)
    process = await bench.client.start(bench.command("wait"), 2)
    bench.server.send_signal(signal.SIGSTOP)
    if ordering:
        with pytest.raises(OSError, match="the fork server is gone"):
            await bench.client.start(bench.command("0"), 2)
    else:
        process.kill()
    async with asyncio.timeout(20):
        assert await process.wait() == -signal.SIGTERM
    assert not bench.client.works


async def test_a_start_that_nobody_waits_for_leaves_no_child(bench: Bench) -> None:
    bench.server.send_signal(signal.SIGSTOP)
    asked = asyncio.create_task(bench.client.start(bench.command("wait"), 2))
    await asyncio.sleep(0)
    asked.cancel()
    bench.server.send_signal(signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await asked
    await until(lambda: not bench.client._running and not bench.client._asked)


async def test_bytes_of_any_kind_are_handed_on(bench: Bench) -> None:
    odd = os.fsdecode(b"caf\xe9 \xff")
    command = bench.command("tell", "1", odd)
    command = dataclasses.replace(command, environ=command.environ | {"ODD": odd})
    child, ends = bench.child(command)
    running = asyncio.create_task(child.run())
    await until(lambda: ends)
    await child.stop(5)
    await running
    assert command.log is not None
    said = json.loads(command.log.read_text().removeprefix("told").splitlines()[0])
    assert (said["environ"]["ODD"], said["words"][2]) == (odd, odd)


async def test_where_this_process_may_open_no_more_files_no_child_is_left(
    bench: Bench, monkeypatch
) -> None:
    """What came along is dropped by the kernel then; the news itself arrives."""
    receive = socket.recv_fds

    def receive_without(*how: Any) -> Any:
        message, given, *rest = receive(*how)
        for descriptor in given:
            os.close(descriptor)
        return message, [], *rest

    with monkeypatch.context() as full:
        full.setattr(socket, "recv_fds", receive_without)
        with pytest.raises(OSError, match="open files"):
            await bench.client.start(bench.command("wait"), 2)
        assert not bench.client._running
    assert await bench.code("7") == 7


@pytest.mark.parametrize("more", [8, 1000])
@pytest.mark.parametrize("open_here", [0, 100])
async def test_it_may_open_few_files_and_has_none_of_those_it_began_with(
    make_bench, more: int, open_here: int
) -> None:
    """`more` files than the number of the last one that a child is given, whatever is open here."""
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(open_here)]
    file = os.open(os.devnull, os.O_RDONLY)
    reads, writes = os.pipe()
    fault = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({writes + more}, {writes + more}))
"""
    bench = make_bench(fault, begun_with=(file,))
    command = bench.command("tell", str(writes), descriptors=(writes,))
    process = await bench.client.start(command, writes)
    assert await process.wait() == 0
    os.close(writes)
    with os.fdopen(reads, "rb") as told:
        said = json.loads(told.read().removeprefix(b"told"))
    assert sorted(said["files"]) == [0, 1, 2, writes]
    for descriptor in (file, *others):
        os.close(descriptor)


async def test_it_ends_with_who_orders(bench: Bench) -> None:
    process = await bench.client.start(bench.command("wait"), 2)
    await bench.client.end()
    assert await process.wait() == -signal.SIGTERM
    assert not is_there(bench.server.pid)
    bench.server.wait()


SLOW_START = """
import time
take_order = fork_server._take_order
fork_server._take_order = lambda given: (time.sleep(0.5), take_order(given))[1]
"""


async def test_a_child_that_is_just_forked_ends_with_it(make_bench) -> None:
    """Red before: it still ignored, as the server does, the signal that the kernel sent it."""
    bench = make_bench(SLOW_START)
    process = await bench.client.start(bench.command("wait"), 2)
    await asyncio.sleep(0.2)  # it sleeps, too
    await bench.client.end()
    async with asyncio.timeout(5):
        assert await process.wait() == -signal.SIGTERM


async def test_a_command_without_one_has_none(tmp_path: Path) -> None:
    async with listening({}) as forks:
        assert forks is None
    bench = Bench(tmp_path)
    channel = bench.client._channel
    assert channel is not None
    environ = {CHANNEL: f"{channel.detach()}:{bench.server.pid}"}
    async with listening(environ) as forks:
        assert forks is not None
        assert environ == {}  # no child of a child finds it
        assert await (await forks.start(bench.command("3"), 2)).wait() == 3
    assert not is_there(bench.server.pid)
    bench.server.wait()


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("call", ["os.pidfd_open", "socket.send_fds"])
async def test_a_child_whose_start_cannot_be_sent_is_ended(make_bench, call: str) -> None:
    """Red before: it went on beside the next one, and nobody could end it."""
    module, _, name = call.partition(".")
    fault = f"""
def refuse(*how, real={call}):
    {call} = real
    raise OSError(109, "Too many references: cannot splice")
{module}.{name} = refuse
"""
    bench = make_bench(fault)
    with pytest.raises(OSError, match="cannot splice"):
        await bench.client.start(bench.command("wait"), 2)
    assert children_of(bench.server.pid) == []
    assert await bench.code("7") == 7


async def test_a_child_that_cannot_begin_ends_and_serves_nobody(make_bench) -> None:
    """Red before: it sent a fault in its parent's name, and took the next orders."""
    fault = """
def refuse(real=os.setsid, calls=[]):
    calls.append(1)
    if len(calls) == 2:  # the first one is the fork server's
        raise PermissionError(1, "Operation not permitted")
    return real()
os.setsid = refuse
"""
    bench = make_bench(fault)
    async with asyncio.timeout(20):
        assert await bench.code("0") == 1
    assert children_of(bench.server.pid) == []


async def test_a_child_that_was_reaped_before_it_can_be_ended_is_refused(
    bench: Bench, monkeypatch
) -> None:
    """Red before: no answer came, and after 10 s the fork server ended with all workers."""
    process = await bench.client.start(bench.command("wait"), 2)
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    news = msgspec.json.encode(ForkNews(ended.pid))

    def receive(*_: Any) -> Any:
        return news, [], 0, None

    with monkeypatch.context() as late:
        late.setattr(socket, "recv_fds", receive)
        with pytest.raises(OSError, match="open files"):
            await bench.client.start(bench.command("0"), 2)
    assert bench.client.works
    assert process.returncode is None


async def test_a_program_is_no_order(bench: Bench) -> None:
    command = dataclasses.replace(bench.command("0"), argv=["/bin/true", "-m", "x"])
    with pytest.raises(ValueError, match="child is not a Python module"):
        await bench.client.start(command, 2)
