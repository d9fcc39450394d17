"""Supervision of a stand-in engine: every phase is seen, and every end leaves nothing behind."""

import asyncio
import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import Self

import httpx
import pytest

from backends.engine.flags import BadFlags
from backends.engine.supervisor import EnginePhase, Supervisor


class SupervisorRun:
    """A supervisor at work, and what it published."""

    def __init__(self, spec) -> None:
        self.seen = []
        self.supervisor = Supervisor(spec, self.seen.append)
        self.models = spec.launch.model.parent

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.supervisor.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.wait_for(self.supervisor.stop(), 20)
        await asyncio.gather(self.task, return_exceptions=True)

    def phases(self) -> list[EnginePhase]:
        return [status.phase for status in self.seen]

    def worker(self) -> int:
        return int((self.models / "worker.pid").read_text())

    def worker_lives(self) -> bool:
        return self.exists(self.worker())

    def exists(self, pid: int) -> bool:
        return Path(f"/proc/{pid}").exists()

    def engine_pid(self, guard: int) -> int:
        return int(Path(f"/proc/{guard}/task/{guard}/children").read_text().split()[0])

    def lives(self) -> int:
        return (self.models / "lives").stat().st_size


async def test_start_serve_stop(fake_spec):
    async with SupervisorRun(fake_spec()) as watched:
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert status.base_url.startswith("http://127.0.0.1:")
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{status.base_url}/models")).status_code == 200
        assert watched.worker_lives()
    assert watched.phases() == [
        EnginePhase.STARTING,
        EnginePhase.LOADING,
        EnginePhase.WARMING,
        EnginePhase.SERVING,
        EnginePhase.DRAINING,
        EnginePhase.STOPPED,
    ]
    assert not watched.worker_lives()


async def test_a_stop_while_the_port_is_looked_at_begins_no_life(fake_spec, monkeypatch):
    async def taken(self, _port: int) -> None:
        self._stop.set()

    monkeypatch.setattr(Supervisor, "_port_conflict", taken)
    async with SupervisorRun(fake_spec()) as watched:
        await watched.task
    assert watched.phases() == [EnginePhase.STOPPED]


async def test_a_crash_at_start_is_retried_after_a_visible_wait(fake_spec):
    async with SupervisorRun(fake_spec("crash-once")) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
    waited = next(status for status in watched.seen if status.phase is EnginePhase.BACKING_OFF)
    assert "exited with 3" in waited.reason
    assert "no memory left" in waited.reason
    assert watched.lives() == 2
    assert watched.supervisor.status.restarts == 1


async def test_what_the_machine_refuses_for_a_while_is_tried_again(fake_spec, tmp_path):
    """A full disk, say: the supervisor ended with it, in silence, and the engine never came."""
    spec = replace(fake_spec(), log=tmp_path / "logs" / "engine.log")
    (tmp_path / "logs").touch()
    async with SupervisorRun(spec) as watched:
        status = await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        assert "could not be started: " in status.reason
        assert str(tmp_path / "logs") in status.reason
        (tmp_path / "logs").unlink()
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)


async def test_a_crash_loop_waits_twice_as_long_each_time_up_to_a_limit(fake_spec):
    async with SupervisorRun(fake_spec("crash", backoff_most_s=0.1)) as watched:
        for _ in range(4):
            await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
            await watched.supervisor.wait_for(EnginePhase.LOADING, 20)
    waits = [
        status.retry_in_s for status in watched.seen if status.phase is EnginePhase.BACKING_OFF
    ]
    assert waits[:4] == [0.05, 0.1, 0.1, 0.1]
    assert EnginePhase.SERVING not in watched.phases()


async def test_an_engine_killed_while_serving_lives_again_without_its_old_workers(fake_spec):
    async with SupervisorRun(fake_spec()) as watched:
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        worker = watched.worker()
        os.kill(watched.engine_pid(status.pid), signal.SIGKILL)
        await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        assert not watched.exists(worker)
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert watched.lives() == 2


async def test_an_engine_that_fails_its_first_request_never_counts_as_serving(fake_spec):
    async with SupervisorRun(fake_spec("sick")) as watched:
        status = await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        assert "the first request failed" in status.reason
        assert "EngineCore died" in status.reason
    assert EnginePhase.SERVING not in watched.phases()


async def test_an_engine_that_turns_deaf_is_replaced(fake_spec):
    async with SupervisorRun(fake_spec("deaf", hung_s=0.5)) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        (watched.models / "deaf").touch()
        status = await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        assert "no answer for" in status.reason
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)


@pytest.mark.parametrize("waits", [True, False])
async def test_an_engine_that_stalls_is_replaced_once_somebody_waits_for_it(fake_spec, waits):
    """Its port answers, and `/health` says 200: without a request nobody can tell, nor care."""
    spec = replace(fake_spec(stalled_s=0.5), waits=lambda: waits)
    async with SupervisorRun(spec) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        (watched.models / "stuck").touch()
        if not waits:
            with pytest.raises(TimeoutError):
                await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 2)
            return
        status = await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        assert "it has done nothing for" in status.reason
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        await asyncio.sleep(1.5)
        assert watched.supervisor.status.phase is EnginePhase.SERVING, "one that answers is let be"
        assert watched.lives() == 2


async def test_an_engine_that_never_gets_ready_is_given_up(fake_spec):
    async with SupervisorRun(fake_spec("deaf", start_s=0.3)) as watched:
        watched.models.mkdir(parents=True, exist_ok=True)
        (watched.models / "deaf").touch()
        status = await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        assert "not ready after" in status.reason


async def test_a_stubborn_engine_is_killed_after_its_grace(fake_spec, monkeypatch):
    monkeypatch.setattr("backends.engine.process._GRACE_AFTER_DRAIN_S", 0.1)
    async with SupervisorRun(fake_spec("stubborn")) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
    assert not watched.worker_lives()


async def test_restart_drains_and_begins_another_life_without_counting_a_crash(fake_spec):
    async with SupervisorRun(fake_spec()) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        watched.supervisor.restart()
        await watched.supervisor.wait_for(EnginePhase.DRAINING, 20)
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert (status.restarts, status.crashes_in_a_row) == (1, 0)
        assert EnginePhase.BACKING_OFF not in watched.phases()


async def test_rest_drains_and_stays_down_until_it_is_woken(fake_spec):
    async with SupervisorRun(fake_spec()) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        watched.supervisor.resume()  # nothing that serves is changed by it
        watched.supervisor.pause()
        await watched.supervisor.wait_for(EnginePhase.DRAINING, 20)
        status = await watched.supervisor.wait_for(EnginePhase.RESTING, 20)
        assert (status.pid, status.crashes_in_a_row) == (None, 0)
        assert not watched.worker_lives()
        watched.supervisor.restart()  # who rests is not started by it
        await asyncio.sleep(0.1)
        assert watched.supervisor.status.phase is EnginePhase.RESTING
        watched.supervisor.resume()
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert (status.restarts, status.crashes_in_a_row) == (1, 0)
        assert EnginePhase.BACKING_OFF not in watched.phases()


async def test_who_rests_from_the_start_is_never_started_and_can_be_stopped(fake_spec):
    watched = SupervisorRun(fake_spec())
    watched.supervisor.pause()
    async with watched:
        await watched.supervisor.wait_for(EnginePhase.RESTING, 20)
    assert set(watched.phases()) == {EnginePhase.RESTING, EnginePhase.STOPPED}


@pytest.fixture
def managed_port(fake_spec):
    """A spec with a port of its own, and a stranger that can come and go on it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]

    def make(behave: str = "well", **limits: float):
        spec = fake_spec(behave, **limits)
        object.__setattr__(spec, "port", port)
        object.__setattr__(spec, "port_setting", "pools.x.engine.port")
        return spec

    def stranger() -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        listener.settimeout(0.2)
        return listener

    make.stranger, make.port = stranger, port
    return make


def was_asked(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return False
    return True


async def test_a_taken_port_is_waited_for_and_its_holder_left_alone(managed_port):
    with managed_port.stranger() as listener:
        async with SupervisorRun(managed_port()) as watched:
            status = await watched.supervisor.wait_for(EnginePhase.BLOCKED, 20)
            assert status.reason.startswith(
                f"port {managed_port.port} is taken by process {os.getpid()} ("
            )
            assert status.reason.endswith("): end it, or set pools.x.engine.port")
            assert status.retry_in_s == 0.05
            assert not (watched.models / "lives").exists()
            assert not was_asked(listener)
            listener.close()
            await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
            assert (watched.lives(), watched.supervisor.status.restarts) == (1, 0)


async def test_a_stranger_that_comes_while_ours_loads_is_never_asked(managed_port):
    """Ours lives all the time, and the stranger's port answers: neither is a sign."""
    async with SupervisorRun(managed_port("late")) as watched:
        async with asyncio.timeout(20):
            while not (watched.models / "lives").exists():  # noqa: ASYNC110  (another process)
                await asyncio.sleep(0.01)
        with managed_port.stranger() as listener:
            status = await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
            assert f"port {managed_port.port} is taken by" in status.reason
            assert not was_asked(listener)
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
    before = watched.phases()[: watched.phases().index(EnginePhase.BACKING_OFF)]
    assert EnginePhase.WARMING not in before


async def test_a_stranger_that_shares_the_port_blocks_until_it_leaves(managed_port):
    async with SupervisorRun(managed_port("sharing")) as watched:
        first = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        with managed_port.stranger():
            await watched.supervisor.wait_for(EnginePhase.BLOCKED, 20)
        again = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert (again.pid, again.restarts, again.reason) == (first.pid, 0, "")
    assert watched.lives() == 1


async def test_a_cancelled_supervisor_kills_its_engine(fake_spec):
    watched = SupervisorRun(fake_spec())
    task = asyncio.create_task(watched.supervisor.run())
    await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not watched.worker_lives()


async def test_a_flag_that_no_start_can_succeed_with_ends_it_at_once(fake_spec):
    spec = fake_spec()
    object.__setattr__(spec.launch, "flags", ("--max-model-length", "5"))
    watched = SupervisorRun(spec)
    with pytest.raises(BadFlags, match="did you mean --max-model-len"):
        await watched.supervisor.run()
    assert watched.phases()[-1] is EnginePhase.STOPPED
    assert not (watched.models / "lives").exists()


def with_adapters(spec, folder: Path, *names: str):
    """Of the form that only an engine reads."""
    config = {"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": ["q_proj"]}
    for name in names:
        (folder / name).mkdir()
        (folder / name / "adapter_config.json").write_text(json.dumps(config))
        (folder / name / "adapter_model.bin").write_bytes(b"\x80\x02}q\x00.")
    launch = replace(spec.launch, adapters={name: folder / name for name in names})
    return replace(spec, launch=launch)


async def test_an_adapter_at_which_a_start_ends_is_left_out_of_the_next(fake_spec, tmp_path):
    """One of them kept the model and all other adapters from being served, for ever."""
    spec = with_adapters(fake_spec(), tmp_path, "a", "bad", "c")
    (tmp_path / "bad" / "broken").touch()
    async with SupervisorRun(spec) as watched:
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        said = "without the adapter `bad`: vLLM could not load it: ValueError: no such modules"
        assert status.reason == said
        first = next(event for event in watched.seen if event.phase is EnginePhase.BACKING_OFF)
        assert first.reason == "the adapter `bad` could not be loaded: ValueError: no such modules"
        assert spec.log.read_text().count("Loaded new LoRA adapter") == 3  # a; then a and c
        (tmp_path / "bad" / "broken").unlink()
        watched.supervisor.restart()
        await watched.supervisor.wait_for(EnginePhase.DRAINING, 20)
        mended = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert mended.reason == ""
        assert watched.lives() == 3


async def test_an_adapter_that_was_spoiled_meanwhile_is_left_out_and_named(fake_spec, tmp_path):
    spec = with_adapters(fake_spec(), tmp_path, "a", "b")
    async with SupervisorRun(spec) as watched:
        await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        (tmp_path / "b" / "adapter_config.json").write_text("{")
        watched.supervisor.restart()
        await watched.supervisor.wait_for(EnginePhase.DRAINING, 20)
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert "without the adapter `b`: " in status.reason
        assert "adapter_config.json` cannot be read" in status.reason
        assert watched.lives() == 2


async def test_an_engine_that_loads_has_nothing_to_drain_and_ends_soon(fake_spec):
    """What served nobody was waited for as long as open streams are."""
    spec = fake_spec("deaf-late", unserved_s=0.1)
    spec = replace(spec, launch=replace(spec.launch, drain_s=600.0))
    async with SupervisorRun(spec) as watched:
        await watched.supervisor.wait_for(EnginePhase.LOADING, 20)
        while not (watched.models / "worker.pid").exists():  # noqa: ASYNC110  (another process)
            await asyncio.sleep(0.01)
    assert watched.phases()[-2:] == [EnginePhase.DRAINING, EnginePhase.STOPPED]
    assert not watched.worker_lives()


async def test_who_asks_for_a_restart_does_not_wait_for_the_next_try(fake_spec):
    async with SupervisorRun(
        fake_spec("crash-once", backoff_first_s=600, backoff_most_s=600)
    ) as watched:
        await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        watched.supervisor.restart()
        status = await watched.supervisor.wait_for(EnginePhase.SERVING, 20)
        assert (status.crashes_in_a_row, watched.lives()) == (0, 2)


async def test_who_is_asked_to_rest_after_a_crash_rests_at_once(fake_spec):
    async with SupervisorRun(
        fake_spec("crash", backoff_first_s=600, backoff_most_s=600)
    ) as watched:
        await watched.supervisor.wait_for(EnginePhase.BACKING_OFF, 20)
        watched.supervisor.pause()
        await watched.supervisor.wait_for(EnginePhase.RESTING, 20)
        assert watched.lives() == 1
