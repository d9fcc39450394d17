"""`breakeven serve`: the parent process that starts and watches everything on a host.

Start order: ledger schema and price book, shared memory, ledger writer, telemetry, workers and
dashboard, then engines, which become targets when healthy. Stop order: workers (open streams
finish), engines, telemetry, and the ledger writer last, so that every journal record of this run is
applied before the parent exits.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from backends.environ import plain_environ
from gateway import logs
from gateway.batches.wake import wait_for_work
from gateway.clock import Clock
from gateway.config import environ
from gateway.config.settings import Settings
from gateway.config.statedir import StateDirLock, hold
from gateway.errors import ConfigError
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host import logfiles
from gateway.host.banner import BILLED_BESIDES, address_lines
from gateway.host.children import ChildCommand, ChildProcess, Forks
from gateway.host.engine_duty import Supervision, installed, run_engines, supervision_for
from gateway.host.fork_client import listening
from gateway.host.journalwatch import follow
from gateway.host.listening import bind_socket, open_server_socket
from gateway.host.log_wrapper import LogOptions, wrapper_arguments
from gateway.host.port_claims import PortClaims
from gateway.host.prepare import HostSetup, moved_ports, prepare
from gateway.host.reload import Reload
from gateway.host.shared_answers import SharedAnswers
from gateway.host.watchdog import watch, watch_peers
from gateway.runtime import METRICS_DIR, Runtime
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE

WRITER_GRACE_S = 20.0
QUICK_GRACE_S = 5.0
STOPPING = "stopping: open streams finish first; press Ctrl-C again to stop at once"
WATCHED = {"telemetry": watch, "peers": watch_peers}


class HostServer:
    """The running host. `start` returns when the children run; engines may still be loading."""

    def __init__(
        self,
        settings: Settings,
        config: Path,
        say: Callable[[str], None],
        ready: Callable[[], Awaitable[None]] = installed,
        listener: socket.socket | None = None,
        forks: Forks | None = None,
    ) -> None:
        self._forks = forks
        self._settings = settings
        self._config = config.resolve()
        self._say = say
        self._ready = ready
        self._tasks: list[asyncio.Task[None]] = []
        self._back: list[ChildProcess] = []  # writer, telemetry, simulated providers: stopped last
        self._front: list[ChildProcess] = []  # workers, dashboard, batches: stopped first
        self._stopping = False
        self._listener = listener
        self._claims = PortClaims()
        self._reload: Reload | None = None
        self._held: StateDirLock | None = None
        self._board: SharedLoadTable | None = None
        self._engines: Supervision = None
        self._answers = SharedAnswers(settings)

    async def start(self, between: Callable[[Runtime], Awaitable[None]] | None = None) -> None:
        """Start the children. `between` runs during the dashboard's start, before all others."""
        self._held = hold(self._settings)
        if self._listener is None:
            self._listener = await open_server_socket(self._settings, self._say)
        self._claims.claim_all((self.address[1], self._settings.dashboard.port))
        self.prepared: HostSetup = await asyncio.to_thread(
            prepare, self._settings, self._config, claims=self._claims
        )
        self.runtime: Runtime = self.prepared.runtime
        for line in moved_ports(self._settings, self.prepared.ports):
            self._say(line)
        if count := self.prepared.prices_waiting:
            words = "prices of the bundled map differ from those in force and wait for approval"
            self._say(f"{count} {words}: `breakeven prices diff --from litellm`")
        for name in self.prepared.billed_besides:
            self._say(BILLED_BESIDES.format(name))
        shown = self._settings.dashboard
        if shown.enabled:
            (await bind_socket("dashboard", (shown.host, shown.port), self._say)).close()
            self._launch(self._front, "dashboard", self._dashboard())
        if between is not None:
            await between(self.runtime)
        self._board = SharedLoadTable(self.runtime.run_dir / "board", self.runtime.layout)
        PeerLoadRow(self._board).clear()  # left by an earlier run that may have been killed
        for name, argv in self._background_commands():
            self._launch(self._back, name, argv)
        for worker in range(self.runtime.workers):
            argv = [
                *_python("gateway.worker"),
                *("--config", str(self.prepared.config), "--runtime", str(self.prepared.path)),
                *("--worker", str(worker), "--fd", str(self._listener.fileno())),
            ]
            given = (self._listener.fileno(), *self._answers.descriptors)
            self._launch(self._front, f"worker-{worker}", argv, given)
        self._engines = supervision_for(
            self._settings, self.runtime, self._board, self._say, self._ready, self._forks
        )
        self._tasks.append(asyncio.create_task(run_engines(self._engines)))
        if self._settings.batches.enabled:
            self._tasks.append(asyncio.create_task(self._run_batches()))
        self._watch_children(self._board)
        url = self.runtime.ledger_url
        self._reload = Reload(self._settings, self._config, url, self._say)
        self._tasks.append(asyncio.create_task(logfiles.rotate_forever(self._logs)))
        where = self._log_of("worker-*")
        self._tasks.append(asyncio.create_task(follow(self.address, self._say, where)))

    def _watch_children(self, board: SharedLoadTable) -> None:
        """Watch children that others depend on and that could hang."""
        for child in self._back:
            if (look := WATCHED.get(child.command.name)) is not None:
                watching = look(child, board, Clock(), self._say)
                self._tasks.append(asyncio.create_task(watching))

    async def _run_batches(self) -> None:
        """Start the batch runner when the first batch exists."""
        await wait_for_work(self.runtime.run_dir, self.runtime.ledger_url, Clock())
        argv = [
            *_python("gateway.batches.runner"),
            *("--config", str(self.prepared.config), "--runtime", str(self.prepared.path)),
            *("--address", self._own_address),
        ]
        if not self._stopping:
            self._launch(self._front, "batches", argv)

    @property
    def address(self) -> tuple[str, int]:
        assert self._listener is not None, "started before it is asked"
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def _own_address(self) -> str:
        """Return the address by which processes of this host reach it."""
        host, port = self.address
        return f"{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"

    async def stop_keeping_listener(self) -> socket.socket:
        """Stop all but the listening socket; new connections wait until the next host accepts."""
        assert self._listener is not None, "started before it is handed over"
        kept = self._listener.dup()
        await self.stop()
        return kept

    def reload(self) -> None:
        """Start to read the configuration file again; ignored until the start is complete."""
        if self._reload is not None and not self._stopping:
            self._tasks.append(asyncio.create_task(self._reload.run()))

    def hurry(self) -> None:
        """Stop sooner: open streams get an error event and are not waited for."""
        for child in self._front:
            child.hurry()

    async def stop(self) -> None:
        """Drain, then stop everything that was started; return when all processes have ended."""
        self._stopping = True
        if self._engines is not None:
            self._engines.start_no_more()
        if self._listener is not None:
            self._listener.close()
        limits = self._settings.server.timeouts
        grace_s = limits.unready_s + limits.drain_s + QUICK_GRACE_S
        await asyncio.gather(*(child.stop(grace_s) for child in self._front))
        if self._engines is not None:
            await self._engines.stop()
        for child in reversed(self._back):
            await child.stop(WRITER_GRACE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._board is not None:
            self._board.close()
        self._claims.release()
        if self._held is not None:
            self._held.release()

    def _background_commands(self) -> list[tuple[str, list[str]]]:
        runtime = str(self.prepared.path)
        config, ledger = str(self.prepared.config), self._settings.ledger
        retained = {
            "--retain-days": ledger.retain_days,
            "--retain-entries-days": ledger.retain_entries_days,
        }
        commands = [
            (
                "ledger-writer",
                [
                    *self._logging_command("ledger-writer", "ledger.writer"),
                    *("--journals", str(self.runtime.journal_dir)),
                    *("--run-dir", str(self.runtime.run_dir)),
                    *("--state-dir", self.runtime.state_dir),
                    *(
                        word
                        for name, days in retained.items()
                        if days is not None
                        for word in (name, str(days))
                    ),
                ],
            ),
            (
                "telemetry",
                [*_python("gateway.host.telemetry"), "--config", config, "--runtime", runtime],
            ),
        ]
        files = ["--config", config, "--runtime", runtime]
        pools = self._settings.pools.values()
        needed = {
            "peers": bool(self._settings.peers.hosts),
            "upkeep": any(pool.upkeep.any for pool in pools),
            "scaling": any(pool.scale is not None for pool in pools),
        }
        commands += [
            (name, [*_python(f"gateway.host.{name}"), *files])
            for name in filter(needed.get, needed)
        ]
        if any(pool.sampling is not None for pool in self._settings.pools.values()):
            drift = [*_python("gateway.telemetry.drift.sampling"), *files]
            commands.append(("drift", [*drift, "--address", self._own_address]))
        for name, provider in self._settings.providers.items():
            if provider.start:
                port = self.prepared.ports.providers[name]
                commands.append(
                    (
                        f"provider-{name}",
                        [
                            *self._logging_command(
                                f"provider-{name}", "backends.simulator.provider"
                            ),
                            *("--name", name, "--port", str(port)),
                        ],
                    )
                )
        return commands

    def _logging_command(self, name: str, module: str) -> list[str]:
        """Return the command of a program that does not support `logs` itself."""
        logs = self._settings.logs
        return [
            sys.executable,
            *wrapper_arguments(name, LogOptions(logs.format, logs.level, logs.to), module),
        ]

    def _dashboard(self) -> list[str]:
        """Return the Streamlit command of the dashboard, with its settings as flags."""
        settings = self._settings.dashboard
        access = settings.access_file
        found = find_spec("dashboard")  # located, not imported: the layers stay apart
        if found is None or found.origin is None:
            raise ConfigError(["dashboard.enabled: the dashboard is not installed"])
        script = Path(found.origin).with_name("app.py")
        return [
            *self._logging_command("dashboard", "dashboard.start"),
            *("run", str(script), "--server.headless", "true"),
            *("--server.address", settings.host, "--server.port", str(settings.port)),
            *("--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none"),
            *([] if access is None else ("--secrets.files", access)),  # its `[auth]` is Streamlit's
            *("--", "--run-dir", str(self.runtime.run_dir)),
            *([] if access is None else ("--access", access)),
        ]

    def _launch(
        self,
        among: list[ChildProcess],
        name: str,
        argv: list[str],
        descriptors: tuple[int, ...] = (),
    ) -> None:
        variables = {
            **self._variables(name),
            "PYTHONUNBUFFERED": "1",
            "PROMETHEUS_MULTIPROC_DIR": str(self.runtime.run_dir / METRICS_DIR),
        }
        log: Path | None = Path(self.runtime.state_dir) / "logs" / f"{name}.log"
        if self._settings.logs.to == "stdout":
            log = None
        command = ChildCommand(name, argv, log, variables, descriptors)
        child = ChildProcess(command, clock=Clock(), on_exit=self._on_exit, forks=self._forks)
        among.append(child)
        self._tasks.append(asyncio.create_task(child.run()))

    def _logs(self) -> list[Path]:
        logs = [child.command.log for child in (*self._back, *self._front)]
        return [log for log in logs if log is not None]

    def _log_of(self, name: str) -> str:
        log = self._settings.state / "logs" / f"{name}.log"
        return "this output" if self._settings.logs.to == "stdout" else str(log)

    def _variables(self, name: str) -> dict[str, str]:
        url = self.runtime.ledger_url
        if name.startswith("worker-"):
            return environ.worker(os.environ, url, self._settings) | self._answers.variables
        if name.startswith("provider-"):
            return plain_environ(os.environ)
        if name == "peers":
            return environ.peers(os.environ, self._settings)
        known = {
            "batches": environ.batches,
            "drift": environ.sampling,
            "scaling": environ.scaling,
            "telemetry": environ.telemetry,
            "dashboard": environ.dashboard,
        }
        if name in known:
            found = known[name](os.environ, url, self._settings)
            return {**found, **self._way_to_write()} if name == "dashboard" else found
        return environ.ledger_reader(os.environ, url)

    def _way_to_write(self) -> dict[str, str]:
        """Return the environment for the dashboard's changes, which go through this gateway."""
        key = Path(self.runtime.state_dir) / KEY_FILE
        return {GATEWAY: f"http://{self._own_address}", KEY_FILE_VARIABLE: str(key)}

    def _on_exit(self, name: str, code: int) -> None:
        """Drop the load of a worker that ended, or of the peers if their exchange ended."""
        if name.startswith("worker-") and self._board is not None:
            self._board.clear(int(name.partition("-")[2]))
        if name == "peers" and self._board is not None:
            PeerLoadRow(self._board).clear()
        if not self._stopping:
            at = datetime.now(UTC).strftime("%H:%M:%S")
            self._say(
                f"{at} UTC: {name} ended with {code}; it is started again "
                f"(see {self._log_of(name)})"
            )


async def run(settings: Settings, config: Path, say: Callable[[str], None]) -> None:
    """Serve until a signal; a second SIGINT or SIGTERM stops without waiting for open streams."""
    stop = asyncio.Event()
    on_signals(stop.set)
    async with listening(os.environ) as forks:
        serving = HostServer(settings, config, say, forks=forks)
        on_hangup(stop.set, serving.reload)
        try:
            await serving.start()
            for line in address_lines(settings, serving.address):
                say(line)
            await stop.wait()
            say(STOPPING)
        finally:
            on_signals(serving.hurry)
            await serving.stop()


def on_signals(work: Callable[[], None]) -> None:
    """Handle SIGINT and SIGTERM from now on; other fatal signals are only logged."""
    logs.outlive_signals()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, work)


def on_hangup(end: Callable[[], None], reload: Callable[[], None] | None = None) -> None:
    """Set the handler of SIGHUP: `end` if a terminal was closed, otherwise `reload`.

    Without `reload`, a process that ignores SIGHUP, as under `nohup`, continues to ignore it. A
    closing terminal usually sends several (from shell and kernel), which must not hurry the stop.
    Without a handler SIGHUP would kill this process at once, and the kernel then all engines and
    their streams.
    """
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    work = end if reload is None or (has_terminal() and not ignored) else reload
    if work is reload or not ignored:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, work)


def has_terminal() -> bool:
    """Return whether a terminal controls this process; closing it also sends SIGHUP."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", module]
