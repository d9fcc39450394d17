"""Engines that `serve` runs itself: vLLM under supervision, simulated ones as children.

vLLM replicas start once their environment is there (`ready`), one pool after the other, so that two
engines never load at once on a small machine. This module keeps their processes running, reports
their state, and publishes which of them serve with a process of their own. An engine is own because
its parent started it and the kernel confirms the owner of its port, never because a port answers.
Telemetry and workers use no other sign.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from backends.engine import gpus, ports
from backends.engine.environment import Environment, flavour_here
from backends.engine.flags import BadFlags, EngineLaunch
from backends.engine.kvtransfer import explain_memory, transfer_environ, transfer_flags
from backends.engine.load_order import GpuLoadQueue
from backends.engine.supervisor import EnginePhase, EngineSpec, EngineStatus, Supervisor
from backends.engine.tasks import task_of
from backends.engines import ENGINE_KINDS, ChildLaunch, EngineKind
from backends.environ import plain_environ
from gateway.clock import Clock, next_tick
from gateway.config.machines import machine_shares
from gateway.config.schedules import stopped_since_us
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.config.settings import EngineSection, Settings
from gateway.fleet.engine_notes import PARENT, EngineStatusNotes
from gateway.fleet.gpu_notes import forget_gpus
from gateway.fleet.scaled_seats import is_seat_wanted
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.children import ChildCommand, ChildProcess, Forks
from gateway.host.devices import assign_gpus, memory
from gateway.host.engine_duty import installed
from gateway.host.gpu_watch import watch_gpus
from gateway.runtime import BUDGET, SEQUENCES, EngineReplica, Runtime
from gateway.table_layout import LoadCell
from ledger.file_watch import FileWatch

QUICK_GRACE_S = 5.0
START_LIMIT_S = 900.0
ORDERS_S, ORDERS_TOLD_S = 0.4, 10.0  # polling interval for orders; with file notifications
POLL_S = 0.25  # interval of checks of a simulated engine's port: while it starts,
WATCH_S = 2.0  # and while it serves
_ON_ITS_WAY = (EnginePhase.STARTING, EnginePhase.LOADING, EnginePhase.WARMING)
_ORDERS = {"": "restart", "rest": "rest", "wake": "wake up"}


class EngineSupervision:
    """Supervisor of a host's engines. `ready` is awaited before the first vLLM starts."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        board: SharedLoadTable,
        say: Callable[[str], None],
        ready: Callable[[], Awaitable[None]] = installed,
        forks: Forks | None = None,
    ) -> None:
        self._forks = forks
        self._settings = settings
        self._runtime = runtime
        self._board = board
        self._say = say
        self._ready = ready
        self._supervisors: list[Supervisor] = []
        self._children: list[ChildProcess] = []
        self._lives: dict[int, Supervisor | ChildProcess] = {}  # by row
        self._gpus: dict[str, tuple[str, ...]] = {}  # by engine
        self._visible: tuple[str, ...] = ()  # used by engines without an assignment
        self._turns = GpuLoadQueue()
        self._words = EngineStatusNotes(runtime.run_dir, PARENT)
        self._resting: set[int] = set()  # rows that upkeep wants stopped
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False

    async def run(self) -> None:
        """Start all engines; return when each was started once, or when the host stops."""
        forget_gpus(self._runtime.run_dir)
        self._keep(self._obey())
        self._words.publish()
        seats = [(row, seat) for row, seat in enumerate(self._runtime.engines) if seat.managed]
        for row, seat in seats:
            if self._kind(seat).child is not None:
                child = self._child(row, seat)
                self._children.append(child)
                self._add_engine(row, child)
                self._keep(child.run())
                self._keep(self._follow(row, seat, child))
        real = [(row, seat) for row, seat in seats if self._kind(seat).program is not None]
        if not real:
            return
        await self._ready()
        if flavour_here() == "cuda":
            self._visible = await asyncio.to_thread(gpus.gpu_ids)
            self._gpus = assign_gpus(self._runtime.engines, self._settings.pools, self._visible)
            self._keep(watch_gpus(self._runtime.run_dir, Clock()))
        for row, seat in real:
            if self._ending:
                return
            supervisor = Supervisor(self._spec(row, seat), partial(self._publish, row))
            self._supervisors.append(supervisor)
            self._add_engine(row, supervisor)
            self._keep(self._supervise(supervisor))
            await _first_phase(supervisor)

    def start_no_more(self) -> None:
        """Do not start engines that wait for their turn; running engines continue."""
        self._ending = True

    async def stop(self) -> None:
        """Drain and stop every engine at once."""
        self.start_no_more()
        await asyncio.gather(
            *(supervisor.stop() for supervisor in self._supervisors),
            *(child.stop(QUICK_GRACE_S) for child in self._children),
        )
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, work: Awaitable[None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    def _add_engine(self, row: int, life: Supervisor | ChildProcess) -> None:
        """Add an engine, paused during its pool's stopped hours or if its plan does not want it."""
        self._lives[row] = life
        seat = self._runtime.engines[row]
        pool = self._settings.pools[seat.pool]
        stopped = stopped_since_us(pool.upkeep, Clock().wall_us()) is not None
        if stopped or not is_seat_wanted(Path(self._runtime.state_dir), pool.scale, seat.name):
            self._pause_engine(row)

    def _pause_engine(self, row: int) -> None:
        self._resting.add(row)
        self._lives[row].pause()
        if not self._board.life(row):
            self._board.publish_stage(row, "resting")

    def _resume_engine(self, row: int) -> None:
        self._resting.discard(row)
        self._lives[row].resume()

    async def _obey(self) -> None:
        """Carry out restart orders; an order that cannot be carried out now is dropped."""
        orders = self._runtime.restart_orders
        shutil.rmtree(orders, ignore_errors=True)  # orders to an earlier run
        orders.mkdir(mode=0o700, parents=True)
        with closing(FileWatch(orders)) as watch:
            while not self._ending:
                for order in sorted(orders.iterdir()):
                    order.unlink()
                    self._obey_order(order.name)
                await watch.changed(ORDERS_S, ORDERS_TOLD_S)

    def _obey_order(self, order: str) -> None:
        number, _, verb = order.partition(".")
        row = int(number) if number.isdecimal() else -1
        life = self._lives.get(row)
        if life is None or verb not in _ORDERS:
            return
        self._say(f"{self._runtime.engines[row].name} is asked to {_ORDERS[verb]}")
        if verb:
            (self._pause_engine if verb == "rest" else self._resume_engine)(row)
        elif row not in self._resting:
            life.restart()

    async def _supervise(self, supervisor: Supervisor) -> None:
        try:
            await supervisor.run()
        except BadFlags as error:
            self._say(f"{supervisor.status.name} cannot start: {error}")

    async def _follow(self, row: int, seat: EngineReplica, child: ChildProcess) -> None:
        """Publish a simulated engine as serving only while its own process listens on its port."""
        port = port_of(seat)
        while True:
            pid = child.pid
            serving = pid is not None and await asyncio.to_thread(ports.is_served_by, port, pid)
            if serving and pid == child.pid:
                self._board.publish_stage(row, "serving", child.lives)
                self._words.publish(seat.name)
            elif self._board.life(row):
                self._board.publish_stage(row, "blocked")
            await next_tick(WATCH_S if self._board.life(row) else POLL_S)

    def _publish(self, row: int, status: EngineStatus) -> None:
        life = status.restarts + 1 if status.phase is EnginePhase.SERVING else 0
        self._board.publish_stage(row, status.phase.value, life)
        seat = self._runtime.engines[row]
        readers = [
            other.name
            for other in self._runtime.engines
            if seat.role == "prefill" and other.role == "decode" and other.pool == seat.pool
        ]
        reason = explain_memory(status.reason, readers)
        detail = f": {reason}" if reason else ""
        if reason or status.phase not in _ON_ITS_WAY or not status.crashes_in_a_row:
            self._words.publish(status.name, reason)  # otherwise the reason of the last crash stays
        self._say(f"{status.name} is {status.phase.value.replace('_', ' ')}{detail}")

    def _waits(self, row: int) -> bool:
        """Return whether a request is there, or the engine was silent since last heard."""
        loads = self._board.own_loads(row)
        return loads[LoadCell.SEQUENCES] > 0 or loads[LoadCell.SILENT_S] > loads[LoadCell.HEARD_S]

    def _spec(self, row: int, seat: EngineReplica) -> EngineSpec:
        engine = self._settings.pools[seat.pool].engine
        program = self._kind(seat).program
        assert engine.model is not None  # checked with the configuration
        assert program is not None  # the caller looked
        own_gpus = self._gpus.get(seat.name, ())
        place = engine.environment or str(Path(self._runtime.state_dir) / "engine")
        return EngineSpec(
            name=seat.name,
            launch=EngineLaunch(
                environment=Environment(Path(place).resolve()),
                model=Path(engine.model).resolve(),
                served_name=seat.served_name,
                flavour=flavour_here(),
                kind=task_of(engine.kinds),
                flags=self._flags(seat, engine),
                drain_s=self._settings.server.timeouts.drain_s,
                gpus=own_gpus,
                traces=traces_of(self._settings.opentelemetry),
                adapters={name: Path(folder) for name, folder in engine.adapters.items()},
                environ=() if seat.side is None else transfer_environ(seat.side, os.environ),
            ),
            log=log_of(self._runtime, seat),
            port=port_of(seat),
            port_setting=self._port_setting(seat),
            gpus=frozenset(own_gpus or self._visible),
            turns=self._turns,
            waits=partial(self._waits, row),
            program=program,
        )

    def _flags(self, seat: EngineReplica, engine: EngineSection) -> tuple[str, ...]:
        flags = vllm_flags(seat, engine)
        if flavour_here() != "cuda":
            return flags
        return (*memory(machine_shares(self._settings)[seat.pool], flags), *flags)

    def _kind(self, seat: EngineReplica) -> EngineKind:
        return ENGINE_KINDS[self._settings.pools[seat.pool].engine.kind]

    def _child(self, row: int, seat: EngineReplica) -> ChildProcess:
        engine, started_as = self._settings.pools[seat.pool].engine, self._kind(seat).child
        assert started_as is not None  # the caller looked
        launch = ChildLaunch(
            model=engine.model or "",
            served_name=seat.served_name,
            port=port_of(seat),
            flags=(*limits(seat, engine.flags), *engine.flags, *_simulated_role(seat)),
            adapters=tuple(engine.adapters),
        )
        command = ChildCommand(
            seat.name, started_as(launch), log_of(self._runtime, seat), plain_environ(os.environ)
        )
        on_exit = partial(self._handle_end, row, seat)
        return ChildProcess(command, clock=Clock(), on_exit=on_exit, forks=self._forks)

    def _handle_end(self, row: int, seat: EngineReplica, name: str, code: int) -> None:
        port = port_of(seat)
        who = ports.other_listener(port)
        gone = "resting" if row in self._resting else "backing_off"
        self._board.publish_stage(row, "blocked" if who else gone)
        cause = (
            f": port {port} is taken by {who}: end it, or set {self._port_setting(seat)}"
            if who
            else ""
        )
        self._words.publish(name, "" if gone == "resting" else f"ended with {code}{cause}")
        self._say(f"{name} ended with {code}{cause}")

    def _port_setting(self, seat: EngineReplica) -> str:
        """Return the setting to change if an engine's port is taken, with its current value."""
        setting = f"pools.{seat.pool}.engine.port"
        port = self._settings.pools[seat.pool].engine.port
        return f"{setting} to another port than {port}" if port else setting


def log_of(runtime: Runtime, seat: EngineReplica) -> Path:
    name = seat.name.replace(":", "-").replace("/", "-")
    return Path(runtime.state_dir) / "logs" / f"{name}.log"


def traces_of(settings: OpenTelemetrySection) -> str | None:
    """Return the trace endpoint of an engine, so that its spans follow its attempts' spans.

    With collector credentials it returns `None`: an engine could pass them on to its clients.
    """
    if settings.headers_env is not None or not settings.traces:
        return None
    return settings.traces_url


def vllm_flags(seat: EngineReplica, engine: EngineSection) -> tuple[str, ...]:
    """Return a vLLM's flags: batch limits, those of its profile, and the user's.

    A profile was measured with vLLM's own limits where it names none; those limits are not set.
    """
    flags = (*seat.tuned, *engine.flags)
    said = limits(seat, flags)
    if engine.profile is not None:
        stated = {SEQUENCES: engine.max_num_seqs, BUDGET: engine.prefill_budget_tokens}
        pairs = zip(said[::2], said[1::2], strict=True)
        said = tuple(word for pair in pairs if stated[pair[0]] is not None for word in pair)
    handing = transfer_flags(seat.lease_s) if seat.role != "whole" else ()
    return (*said, *flags, *handing, *_events(seat))


def _simulated_role(seat: EngineReplica) -> tuple[str, ...]:
    """Return the flags by which a simulated engine offers its KV on its serving port."""
    return ("--kv-lease-s", str(seat.lease_s)) if seat.role != "whole" else ()


def _events(seat: EngineReplica) -> tuple[str, ...]:
    if seat.kv_events is None:
        return ()
    said = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": seat.kv_events}
    return "--kv-events-config", json.dumps(said)


def limits(seat: EngineReplica, flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the batch limits as flags, so that routing and engine agree on them."""
    given = {flag.partition("=")[0] for flag in flags}
    found: list[str] = []
    for flag, value in (
        (SEQUENCES, seat.max_num_seqs),
        (BUDGET, seat.prefill_budget_tokens),
    ):
        if flag not in given:
            found += [flag, str(value)]
    return tuple(found)


def port_of(seat: EngineReplica) -> int:
    return int(seat.base_url.removesuffix("/v1").rpartition(":")[2])


async def _first_phase(supervisor: Supervisor) -> None:
    """Wait until the engine serves or has failed once, at most `START_LIMIT_S`.

    The next engine does not wait for a repair, nor for another process to free the port.
    """
    settled = (
        EnginePhase.SERVING,
        EnginePhase.BACKING_OFF,
        EnginePhase.BLOCKED,
        EnginePhase.STOPPED,
        EnginePhase.RESTING,
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(START_LIMIT_S):
            while supervisor.status.phase not in settled:  # noqa: ASYNC110  (published by callback)
                await asyncio.sleep(0.25)
