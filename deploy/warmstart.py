"""Forked programs for tests, so that their imports run only once.

A `breakeven` process spends one to four seconds of CPU on imports, and the tests start hundreds.
Here one process imports what commands and hosts import, then forks each program. A host's own fork
server is forked from it, too. Tests of imports, of a process's initial environment or of signals
to a terminal need a program that is really started (`subprocess`).

    python -m deploy.warmstart --serve DESCRIPTOR PID 1    serve forks for PID (0: import nothing)
"""

import contextlib
import functools
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import msgspec
import setproctitle

from backends.environ import plain_environ
from gateway.host import fork_server, preload, shared_work
from gateway.host.children import die_with_parent
from gateway.host.fork_server import MESSAGE_BYTES, ForkNews, ForkOrder
from gateway.host.memory_file import memory_file

DASHBOARD = "from streamlit.web.cli import main; main()"  # same as `python -m streamlit`
BREAKEVEN = "from gateway.cli.main import main; main()"
MODULE = "from gateway.host.run_module import run_module; run_module({!r})"  # same as `python -m`
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gateway.cli", "gateway.demo")  # all modules of these are imported
MODULES = (
    *shared_work.MODULES, "gateway.host.serve", "gateway.host.start", "gateway.host.prepare",
    "backends.simulator.server", "backends.simulator.provider", "alembic.command",
    "gateway.host.peers", "ledger.seals.retire", "ledger.verify.checks",
)  # fmt: skip
_MODULE = "deploy.warmstart"
# Array libraries would start threads at import, which a forked process does not have.
_UNTHREADED = {
    "OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false",
}  # fmt: skip
_CODE_S = 30.0  # timeout for the exit code of a process that has ended


class WarmProgram:
    """A forked program, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(self, programs: "WarmPrograms", pid: int, pidfd: int) -> None:
        self._programs, self.pid, self._pidfd = programs, pid, pidfd
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0):
            self.returncode = self._programs.exit_code(self.pid)
            os.close(self._pidfd)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status, negative for a signal. Raises `TimeoutExpired` on a timeout."""
        if self.returncode is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        code = self.poll()
        assert code is not None, "it has ended"
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout_s: float | None) -> bool:
        look = select.poll()
        look.register(self._pidfd, select.POLLIN)
        return bool(look.poll(None if timeout_s is None else timeout_s * 1000))


Program = subprocess.Popen[Any] | WarmProgram


class WarmPrograms:
    """The process that forks, as the tests use it. It starts with the first program."""

    def __init__(self, *, imports_ahead: bool = True) -> None:
        self._imports_ahead = imports_ahead
        self._channel: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._codes: dict[int, int] = {}
        self._started: list[tuple[ForkNews, list[int]]] = []
        self._lock = threading.Lock()

    def start(
        self,
        words: Sequence[str | Path],
        *,
        output: int | None = None,
        errors: int | None = None,
        folder: Path = ROOT,
        environ: Mapping[str, str] | None = None,
        program: str = BREAKEVEN,
    ) -> WarmProgram:
        """Fork a Python process that runs the source `program` with `words` as its arguments.

        `output`, `errors`: file descriptors. Without `errors`, errors go to the output; without
        `output`, that is /dev/null. A terminal as output is the input, too.
        """
        environ = dict(os.environ if environ is None else environ)
        order = ForkOrder(
            _MODULE, [str(folder), program, *map(str, words)], environ, fork_server.STANDARD
        )
        with self._lock, Path(os.devnull).open("r+b", buffering=0) as nothing:
            channel = self._open()
            said = nothing.fileno() if output is None else output
            given = said if os.isatty(said) else nothing.fileno()
            streams = (given, said, said if errors is None else errors)
            with memory_file(order.encode()) as file:
                socket.send_fds(channel, [b"fork"], [file.fileno(), *streams])
            while not self._started:
                self._receive(channel)
            news, descriptors = self._started.pop()
        if news.fault:
            raise OSError(news.fault)
        return WarmProgram(self, news.pid, descriptors[0])

    def open(
        self,
        words: Sequence[str | Path],
        *,
        environ: Mapping[str, str] | None = None,
        program: str = BREAKEVEN,
    ) -> WarmProgram:
        """Start a program and pipe its output to `stdout`. Its errors go to standard error."""
        ours, theirs = os.pipe()
        try:
            running = self.start(words, output=theirs, errors=2, environ=environ, program=program)
        finally:
            os.close(theirs)
        running.stdout = os.fdopen(ours, encoding="utf-8")
        return running

    def run(
        self,
        words: Sequence[str | Path],
        *,
        folder: Path = ROOT,
        environ: Mapping[str, str] | None = None,
        program: str = BREAKEVEN,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end. Return its status, output and errors.

        Raises `TimeoutExpired`, and kills the program, when it takes longer than `timeout_s`.
        """
        command = [str(word) for word in words]
        pipes = [os.pipe(), os.pipe()]
        try:
            running = self.start(
                words, output=pipes[0][1], errors=pipes[1][1],
                folder=folder, environ=environ, program=program,
            )  # fmt: skip
        finally:
            for _, theirs in pipes:
                os.close(theirs)
        said = _read_to_end([ours for ours, _ in pipes], timeout_s)
        if said is None:
            running.kill()
        code = running.wait()
        if said is None:
            raise subprocess.TimeoutExpired(command, timeout_s)
        return subprocess.CompletedProcess(command, code, *(text.decode() for text in said))

    def exit_code(self, pid: int) -> int:
        """Return the exit code of a process that has ended. Raises `OSError` after 30 s."""
        deadline_s = time.monotonic() + _CODE_S
        with self._lock:
            while pid not in self._codes:
                assert self._channel is not None, "it has forked the process"
                look = select.poll()
                look.register(self._channel, select.POLLIN)
                if not look.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
                    raise OSError("the process that forks told no exit code")
                self._receive(self._channel)
            return self._codes.pop(pid)

    def close(self) -> None:
        """End the process that forks, and with it the programs that still run."""
        if self._channel is not None and self._server is not None:
            self._channel.close()
            self._server.wait(60)

    def _open(self) -> socket.socket:
        if self._channel is None:
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, "-m", _MODULE, "--serve", str(theirs.fileno())]
            environ = {**os.environ, **_UNTHREADED, "PYDANTIC_DISABLE_PLUGINS": "__all__"}
            with theirs:
                command += [str(os.getpid()), str(int(self._imports_ahead))]
                self._start_server(command, pass_fds=[theirs.fileno()], cwd=ROOT, env=environ)
        return self._channel

    def _start_server(self, command: Sequence[str], **how: Any) -> None:
        """Start the process that forks, from a thread that lives on.

        The kernel ends the process when the thread that started it ends.
        """
        started = threading.Event()

        def start() -> None:
            self._server = subprocess.Popen(command, **how)
            started.set()

        def start_and_stay() -> None:
            start()
            if self._server is not None:
                self._server.wait()

        if threading.current_thread() is threading.main_thread():
            start()
        else:
            threading.Thread(target=start_and_stay, name="warm programs", daemon=True).start()
            started.wait()

    def _receive(self, channel: socket.socket) -> None:
        message, descriptors, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 1)
        if not message:
            raise OSError("the process that forks is gone")
        news = msgspec.json.decode(message, type=ForkNews)
        if news.code is None:
            self._started.append((news, descriptors))
        else:
            self._codes[news.pid] = news.code


def _read_to_end(descriptors: Sequence[int], timeout_s: float) -> list[bytes] | None:
    """Return the bytes from each descriptor, `None` on a timeout. The descriptors are closed."""
    read: dict[int, bytearray] = {descriptor: bytearray() for descriptor in descriptors}
    deadline_s, open_ones = time.monotonic() + timeout_s, select.poll()
    for descriptor in descriptors:
        open_ones.register(descriptor)
    left = len(read)
    while left and (ready := open_ones.poll(max(0.0, deadline_s - time.monotonic()) * 1000)):
        for descriptor, _ in ready:
            piece = os.read(descriptor, 65536)
            read[descriptor] += piece
            if not piece:
                open_ones.unregister(descriptor)
                left -= 1
    for descriptor in descriptors:
        os.close(descriptor)
    return None if left else [bytes(text) for text in read.values()]


@functools.cache
def programs() -> WarmPrograms:
    """Return the `WarmPrograms` of this process, which live until the process ends."""
    return WarmPrograms()


def open_program(
    words: Sequence[str | Path],
    *,
    within: Sequence[str],
    program: str,
    environ: Mapping[str, str],
    root: Path,
    warm: bool,
) -> Program:
    """Start `breakeven`: forked if that makes no difference, otherwise as a new process.

    `within`: the command that runs it; `program`: source for `python -c`; `root`: its source tree.
    """
    plain = warm and not within and root == ROOT and is_plain(environ)
    if plain and program.endswith(BREAKEVEN):  # code before it may change what is imported
        return programs().open(words, environ=environ, program=program)
    command = [*within, sys.executable, "-c", program, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, cwd=root)


def start_program(
    words: Sequence[str | Path], *, output: int, folder: Path, environ: Mapping[str, str]
) -> Program:
    """Start `breakeven` in a folder: forked, or new if `environ` configures Python."""
    if is_plain(environ):
        return programs().start(words, output=output, folder=folder, environ=environ)
    return subprocess.Popen(
        [Path(sys.executable).with_name("breakeven"), *words], cwd=folder, env=environ,
        stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        preexec_fn=die_with_parent,  # noqa: PLW1509  (no thread of ours holds a lock)
    )  # fmt: skip


def is_plain(environ: Mapping[str, str]) -> bool:
    """Return whether Python would start with this environment as with this process's own."""
    early = ("PYTHON", "LD_", "BREAKEVEN_PRELOAD")
    names = {name for name in (*environ, *os.environ) if name.startswith(early)}
    return all(environ.get(name) == os.environ.get(name) for name in names)


def main() -> None:
    """Serve forks, or run the ordered program in a forked process."""
    if sys.argv[1] == "--serve":
        _serve(*map(int, sys.argv[2:]))
    else:
        folder, program, *words = sys.argv[1:]
        _run_program(folder, program, words)


def _serve(descriptor: int, host: int, imports_ahead: int) -> None:
    # First, because titles are written over the memory of the unchanged environment.
    setproctitle.setproctitle("breakeven warm programs")
    os.umask(0o022)  # a test may have changed its own umask
    if imports_ahead:
        _import_ahead()
    fork_server.run(socket.socket(fileno=descriptor), host)


def _import_ahead() -> None:
    names = [_MODULE, *MODULES]
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        names += [f"{package}.{module.name}" for module in pkgutil.iter_modules(path)]
    for name in names:
        importlib.import_module(name)
    importlib.import_module("dashboard.start").import_ahead()


def _run_program(folder: str, program: str, words: list[str]) -> None:
    os.chdir(folder)
    sys.argv = ["-c", *words]
    if program.endswith(BREAKEVEN):
        sys.argv[0] = str(Path(sys.executable).with_name("breakeven"))
        if words and words[0] in preload.COMMANDS:
            _prepare_host()
    sys.modules["__main__"] = module = ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), vars(module))


def _prepare_host() -> None:
    """Give `preload` the environment that a host's command has after it was executed again."""
    file = memory_file(json.dumps(dict(os.environ)).encode())
    plain = plain_environ(os.environ)
    os.environ.clear()
    os.environ.update(plain)
    os.environ[preload.GIVEN] = str(os.dup(file.fileno()))
    file.close()


if __name__ == "__main__":
    main()
