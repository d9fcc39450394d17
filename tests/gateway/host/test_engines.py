"""Engines that `serve` runs: what they are started with, kept alive, and ended."""

import asyncio
import dataclasses
import json
import os
import signal
import socket
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from backends.engine.supervisor import EnginePhase, EngineStatus
from backends.simulator.running import bind
from gateway.clock import Clock
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.config.settings import EngineSection, parse
from gateway.fleet.engine_notes import read_status_notes
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.engines import (
    EngineSupervision,
    installed,
    limits,
    port_of,
    traces_of,
    vllm_flags,
)
from gateway.host.telemetry import TelemetryProcess
from gateway.runtime import EngineReplica, RuntimePorts, resolve_runtime
from gateway.table_layout import HEALTHS, STAGES, EngineCell, LoadCell
from ledger.database import make_engine, migrate, sqlite_url

TEXT = """
pools:
  sim:
    engine: {kind: simulated, model: rtx4090-llama-3.1-8b, replicas: 1, served_name: llama}
    gpu: {type: RTX 4090}
  real:
    engine: {kind: vllm, model: MODEL, replicas: 2, flags: [--max-num-seqs=7]}
    gpu: {type: H200}
"""


def seat(**changes) -> EngineReplica:
    fields = {
        "name": "pool:a/0", "pool": "a", "base_url": "http://127.0.0.1:8100/v1", "managed": True,
        "simulated": False, "served_name": "a", "max_num_seqs": 64, "prefill_budget_tokens": 2048,
    }  # fmt: skip
    return EngineReplica(**{**fields, **changes})


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), ("--max-num-seqs", "64", "--max-num-batched-tokens", "2048")),
        (("--max-num-seqs", "7"), ("--max-num-batched-tokens", "2048")),
        (("--max-num-seqs=7", "--max-num-batched-tokens=9"), ()),
    ],
)
def test_limits_are_said_unless_the_flags_say_them(flags, said) -> None:
    assert limits(seat(), flags) == said


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"profile": "p.json"}, ("--kv-cache-dtype", "fp8", "--x")),
        (
            {"profile": "p.json", "max_num_seqs": 64},
            ("--max-num-seqs", "64", "--kv-cache-dtype", "fp8", "--x"),
        ),
    ],
)
def test_a_profile_is_told_as_it_was_measured_with_what_a_person_states(stated, said) -> None:
    """Without limits of its own vLLM's were measured, and so none are told."""
    engine = EngineSection(model="m", replicas=1, flags=("--x",), **stated)
    assert vllm_flags(seat(tuned=("--kv-cache-dtype", "fp8")), engine) == said
    assert vllm_flags(seat(), EngineSection(model="m", replicas=1)) == limits(seat(), ())


def test_an_engine_is_told_where_to_tell_of_its_prefix_cache() -> None:
    engine = EngineSection(model="m", replicas=1, kv_events=True)
    *_, flag, words = vllm_flags(seat(kv_events="ipc:///s/run/kv-a-0"), engine)
    assert flag == "--kv-events-config"
    assert json.loads(words) == {
        "enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "ipc:///s/run/kv-a-0",
    }  # fmt: skip


def test_the_port_is_the_seats() -> None:
    assert port_of(seat()) == 8100


@pytest.fixture
def supervision(tmp_path: Path):
    """Of the simulated pool only; the real one needs an engine environment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = TEXT.replace("MODEL", str(tmp_path / "model"))
    settings = parse(text, name="t").model_copy(update={"state_dir": str(tmp_path)})
    ports = RuntimePorts({"pool:sim/0": port, "pool:real/0": 1, "pool:real/1": 2}, {})
    runtime = resolve_runtime(settings, ports, ledger_url="sqlite://", policy_version="v")
    said: list[str] = []
    boards: list[SharedLoadTable] = []

    def make(names: tuple[str, ...], ready=installed) -> EngineSupervision:
        kept = replace(
            runtime, engines=tuple(engine for engine in runtime.engines if engine.pool in names)
        )
        boards.append(SharedLoadTable(tmp_path / "board", kept.layout))
        make.board, make.runtime = boards[-1], kept
        return EngineSupervision(settings, kept, boards[-1], said.append, ready)

    make.said, make.port, make.settings = said, port, settings
    yield make
    for board in boards:
        board.close()


async def until(check, patience_s: float = 30.0):
    async with asyncio.timeout(patience_s):
        while not (value := check()):  # noqa: ASYNC110  (other processes set no event)
            await asyncio.sleep(0.01)
    return value


async def test_a_simulated_engine_answers_and_is_gone_after_stop(supervision, tmp_path) -> None:
    engines = supervision(("sim",))
    await engines.run()
    url = f"http://127.0.0.1:{supervision.port}/v1/models"
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(30):
        while True:
            try:
                cards = (await client.get(url)).json()["data"]
                break
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
        assert cards[0]["id"] == "llama"
        assert (tmp_path / "logs" / "pool-sim-0.log").exists()
        await engines.stop()
        with pytest.raises(httpx.HTTPError):
            await client.get(url)


async def test_a_simulated_engine_serves_from_its_own_pid_on(supervision) -> None:
    """Each life has a number; between two there is none."""
    engines = supervision(("sim",))
    board = supervision.board
    assert (board.life(0), board.stage(0)) == (0, "waiting")
    await engines.run()
    await until(lambda: board.life(0) == 1)
    assert board.stage(0) == "serving"
    os.kill(engines._children[0].pid, signal.SIGKILL)
    await until(lambda: board.life(0) == 0)
    assert board.stage(0) == "backing_off"
    run_dir = supervision.runtime.run_dir
    assert read_status_notes(run_dir) == {"pool:sim/0": "ended with -9"}
    await until(lambda: board.life(0) == 2)
    await until(lambda: not read_status_notes(run_dir))
    await engines.stop()
    assert board.life(0) == 0


async def test_a_stranger_on_a_simulated_engines_port_is_not_taken_for_it(
    supervision, monkeypatch
) -> None:
    monkeypatch.setattr("gateway.host.engines.POLL_S", 0.01)
    engines = supervision(("sim",))
    publish, lives = supervision.board.publish_stage, []
    supervision.board.publish_stage = lambda *said: (lives.append(said[2:]), publish(*said))
    with bind("127.0.0.1", supervision.port) as stranger:
        await engines.run()
        await until(lambda: engines._children[0].crashes)
        assert supervision.board.stage(0) == "blocked"
        assert set(lives) == {()}  # not for a moment, although its process lived for a while
        cause = f"port {supervision.port} is taken by process {os.getpid()} ("
        assert cause in supervision.said[0]
        assert "end it, or set pools.sim.engine.port" in supervision.said[0]
        stranger.close()
        await until(lambda: supervision.board.life(0))
    await engines.stop()


class LoadingSupervisor:
    """A supervisor whose engine loads until it is stopped, or is said to serve."""

    def __init__(self, spec, publish) -> None:
        self.status, self._publish = EngineStatus(spec.name, EnginePhase.STARTING), publish
        self.spec = spec
        self._stop, self._ended = asyncio.Event(), asyncio.Event()

    def is_in(self, phase: EnginePhase) -> None:
        self.status = EngineStatus(self.status.name, phase)
        self._publish(self.status)

    async def run(self) -> None:
        self.is_in(EnginePhase.LOADING)
        await self._stop.wait()
        self.is_in(EnginePhase.STOPPED)
        self._ended.set()

    def restart(self) -> None:
        self.is_in(EnginePhase.DRAINING)

    def pause(self) -> None:
        self.is_in(EnginePhase.RESTING)

    def resume(self) -> None:
        self.is_in(EnginePhase.LOADING)

    async def stop(self) -> None:
        self._stop.set()
        await self._ended.wait()


async def test_why_an_engine_crashed_is_told_until_it_serves(supervision) -> None:
    """In a crash loop it mostly loads: its status said so, and not why it does again and again."""
    engines = supervision(("real",))
    run_dir = supervision.runtime.run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    name = "pool:real/0"
    crashed = EngineStatus(
        name, EnginePhase.BACKING_OFF, crashes_in_a_row=2, reason="exited with 1: no memory"
    )
    for status in (crashed, dataclasses.replace(crashed, phase=EnginePhase.LOADING, reason="")):
        engines._publish(0, status)
        assert read_status_notes(run_dir) == {name: "exited with 1: no memory"}
    engines._publish(0, dataclasses.replace(crashed, phase=EnginePhase.SERVING, reason=""))
    assert read_status_notes(run_dir) == {}


@pytest.mark.parametrize("serves", [False, True])
async def test_nothing_is_started_once_the_end_is_near(supervision, monkeypatch, serves) -> None:
    """Neither when the engine before ends, nor when it serves while streams finish."""
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    engines = supervision(("real",))
    run = asyncio.create_task(engines.run())
    await until(lambda: supervision.said)
    if serves:
        engines.start_no_more()
        engines._supervisors[0].is_in(EnginePhase.SERVING)
        await asyncio.wait_for(run, 10)
    await engines.stop()
    await asyncio.wait_for(run, 10)
    middle = ["pool:real/0 is serving"] if serves else []
    assert supervision.said == [
        "pool:real/0 is loading", *middle, "pool:real/0 is stopped",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flavour", "seen", "told"),
    [("cuda", ("4", "7"), [("4",), ("7",)]), ("cuda", ("4",), [(), ()]), ("cpu", (), [(), ()])],
)
async def test_replicas_are_told_their_own_gpus(supervision, monkeypatch, flavour, seen, told):
    """Two that see the same GPU would both load into it."""
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    monkeypatch.setattr("gateway.host.engines.flavour_here", lambda: flavour)
    monkeypatch.setattr("gateway.host.engines.gpus.gpu_ids", lambda: seen)
    engines = supervision(("real",))
    run = asyncio.create_task(engines.run())
    for number in range(2):
        await until(lambda number=number: f"pool:real/{number} is loading" in supervision.said)
        engines._supervisors[number].is_in(EnginePhase.SERVING)
    await asyncio.wait_for(run, 30)
    assert [supervisor.spec.launch.gpus for supervisor in engines._supervisors] == told
    first, second = (supervisor.spec for supervisor in engines._supervisors)
    # Where there are too few, both take all of them, one after the other.
    assert [first.gpus, second.gpus] == [frozenset(gpus or seen) for gpus in told]
    assert first.turns is second.turns
    await engines.stop()


async def test_a_restart_is_begun_when_it_is_asked_for(supervision, monkeypatch) -> None:
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    engines = supervision(("real",))
    orders = engines._runtime.restart_orders
    orders.mkdir(parents=True)
    (orders / "0").touch()  # of an earlier run
    run = asyncio.create_task(engines.run())
    await until(lambda: "pool:real/0 is loading" in supervision.said)
    await until(lambda: not list(orders.iterdir()))
    for name in ("0", "7", "words", "\u00b2"):  # an engine that is not there, and what names none
        (orders / name).touch()
    await until(lambda: not list(orders.iterdir()))
    await engines.stop()
    await asyncio.wait_for(run, 10)
    assert supervision.said == [
        "pool:real/0 is loading", "pool:real/0 is asked to restart", "pool:real/0 is draining",
        "pool:real/0 is stopped",
    ]  # fmt: skip


async def test_an_engine_rests_and_wakes_when_that_is_asked(supervision, monkeypatch) -> None:
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    engines = supervision(("real",))
    orders = engines._runtime.restart_orders
    run = asyncio.create_task(engines.run())
    await until(lambda: "pool:real/0 is loading" in supervision.said)
    await until(orders.exists)
    for name in ("0.rest", "0", "0.sing", "0.wake"):  # who rests is not restarted
        (orders / name).touch()
        await until(lambda: not list(orders.iterdir()))
    await engines.stop()
    await asyncio.wait_for(run, 10)
    assert [line for line in supervision.said if "real/0" in line] == [
        "pool:real/0 is loading", "pool:real/0 is asked to rest", "pool:real/0 is resting",
        "pool:real/0 is asked to restart", "pool:real/0 is asked to wake up",
        "pool:real/0 is loading", "pool:real/0 is stopped",
    ]  # fmt: skip


async def test_a_pool_that_is_stopped_at_this_hour_is_not_started_at_all(
    supervision, monkeypatch
) -> None:
    monkeypatch.setattr("gateway.host.engines.stopped_since_us", lambda *_: 1)
    engines = supervision(("sim",))
    await engines.run()
    await asyncio.sleep(0.5)
    assert supervision.board.stage(0) == "resting"
    assert engines._children[0].lives == 0
    await until(engines._runtime.restart_orders.exists)
    (engines._runtime.restart_orders / "0.wake").touch()
    await until(lambda: supervision.board.life(0) == 1)
    (engines._runtime.restart_orders / "0.rest").touch()
    await until(lambda: supervision.board.stage(0) == "resting")
    assert supervision.board.life(0) == 0
    await engines.stop()


async def test_the_next_engine_is_started_when_the_first_serves(supervision, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    engines = supervision(("real",))
    run = asyncio.create_task(engines.run())
    await until(lambda: supervision.said)
    engines._supervisors[0].is_in(EnginePhase.SERVING)
    await until(lambda: "pool:real/1 is loading" in supervision.said)
    await engines.stop()
    await asyncio.wait_for(run, 10)


@pytest.mark.parametrize("phase", [EnginePhase.BLOCKED, EnginePhase.BACKING_OFF])
async def test_an_engine_whose_port_is_taken_holds_up_no_other(
    supervision, monkeypatch, phase
) -> None:
    """Its stranger may stay for days; a crash is the control."""
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    engines = supervision(("real",))
    run = asyncio.create_task(engines.run())
    await until(lambda: supervision.said)
    engines._supervisors[0].is_in(phase)
    await until(lambda: "pool:real/1 is loading" in supervision.said, 5.0)
    await engines.stop()
    await asyncio.wait_for(run, 10)


async def test_an_engine_that_loads_too_long_holds_up_no_other(supervision, monkeypatch) -> None:
    """The others were never started then, and nothing was said."""
    monkeypatch.setattr("gateway.host.engines.Supervisor", LoadingSupervisor)
    monkeypatch.setattr("gateway.host.engines.START_LIMIT_S", 0.3)
    engines = supervision(("real",))
    await asyncio.wait_for(engines.run(), 10)
    assert supervision.said == ["pool:real/0 is loading", "pool:real/1 is loading"]
    await engines.stop()


def test_every_phase_of_a_supervisor_has_its_word_on_the_board(supervision) -> None:
    engines = supervision(("real",))
    assert set(STAGES) == {phase.value for phase in EnginePhase} | {"waiting"}
    for phase in EnginePhase:
        engines._publish(1, EngineStatus("pool:real/1", phase, restarts=4))
        life = 5 if phase is EnginePhase.SERVING else 0
        assert (supervision.board.life(1), supervision.board.stage(1)) == (life, phase.value)
        assert supervision.board.life(0) == 0


async def test_telemetry_never_asks_a_stranger_on_a_managed_port(
    supervision, stranger_on, tmp_path
) -> None:
    """Also when it was there first, and healthy; afterwards ours is met on the same port."""
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    stranger = stranger_on(supervision.port, "llama")
    engines, board = supervision(("sim",)), supervision.board
    ledger = make_engine(url)
    supervision.runtime.run_dir.mkdir(parents=True, exist_ok=True)
    telemetry = TelemetryProcess(supervision.settings, supervision.runtime, board, ledger, Clock())
    watching = asyncio.create_task(telemetry.run())

    def health() -> str:
        return HEALTHS[int(board.published(0)[EngineCell.HEALTH])]

    await until(lambda: health() == "loading")
    await engines.run()
    await until(lambda: health() == "down" and board.stage(0) == "blocked")
    await asyncio.sleep(3 * supervision.settings.telemetry.scrape_s)
    assert board.published(0)[EngineCell.A_S] == 0.0
    assert stranger.asked == []
    stranger.end()
    await until(lambda: health() == "healthy")
    assert board.published(0)[EngineCell.A_S] > 0.0
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await engines.stop()
    ledger.dispose()


async def test_nothing_waits_for_an_environment_that_nobody_needs(supervision) -> None:
    async def never() -> None:
        raise AssertionError("asked for")

    engines = supervision((), never)
    await engines.run()
    await engines.stop()


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({}, None),
        ({"endpoint": "http://c:4318/"}, "http://c:4318/v1/traces"),
        ({"endpoint": "http://c:4318", "traces": False}, None),
        ({"endpoint": "http://c:4318", "headers_env": "SECRET"}, None),
    ],
)
def test_engines_send_spans_where_no_secret_is_needed(members, told) -> None:
    assert traces_of(OpenTelemetrySection(**members)) == told


async def test_vllm_is_started_with_its_limits_and_model(supervision, tmp_path) -> None:
    engines = supervision(("real",))
    first = engines._runtime.engines[0]
    spec = engines._spec(0, first)
    assert spec.launch.flags == ("--max-num-batched-tokens", "2048", "--max-num-seqs=7")
    assert spec.launch.model == tmp_path / "model"
    assert spec.launch.environment.directory == (tmp_path / "engine").resolve()
    assert (spec.port, spec.launch.kind) == (1, "generate")


async def test_an_engine_is_waited_for_while_requests_are_there_or_nothing_was_heard(
    supervision,
) -> None:
    engines = supervision(("real",))
    waits = engines._spec(0, engines._runtime.engines[0]).waits
    board, base = engines._board, engines._board.load_row(0, 0)
    assert not waits()
    board.cells[base + LoadCell.SEQUENCES] = 1
    assert waits()
    board.cells[base + LoadCell.SEQUENCES] = 0
    board.cells[base + LoadCell.SILENT_S] = 5.0  # requests were moved away from it
    assert waits()
    board.cells[base + LoadCell.HEARD_S] = 6.0
    assert not waits()


async def test_an_engine_that_cannot_start_is_told_and_holds_up_no_other(supervision) -> None:
    """There is no engine environment here: both replicas back off, each in its turn."""
    engines = supervision(("real",))
    async with asyncio.timeout(30):
        await engines.run()
    assert {line.partition(" ")[0] for line in supervision.said} == {"pool:real/0", "pool:real/1"}
    await engines.stop()
