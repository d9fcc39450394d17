"""One engine at a time loads into a GPU, whatever made it load."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from backends.engine.load_order import GpuLoadQueue
from backends.engine.supervisor import EnginePhase, EngineSpec, Supervisor

LOADS = (EnginePhase.LOADING, EnginePhase.WARMING)


def test_a_gpu_is_loaded_into_by_one_at_a_time() -> None:
    turns = GpuLoadQueue()
    assert turns.acquire("a", {"0", "1"})
    assert not turns.acquire("b", {"1", "2"})
    assert turns.acquire("c", {"2"})  # what was refused holds nothing
    assert turns.acquire("a", {"0", "1"})
    turns.release("b")
    assert not turns.acquire("b", {"1"})
    turns.release("a")
    assert turns.acquire("b", {"1"})
    assert turns.acquire("d", ())


class Host:
    """Engines of one host, and which of them loaded when another did."""

    def __init__(self, turns: GpuLoadQueue) -> None:
        self.turns, self.phases, self.met = turns, {}, []
        self.engines: dict[str, Supervisor] = {}
        self.runs: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Those that do not run yet."""
        for name, engine in self.engines.items():
            if name not in self.runs:
                self.runs[name] = asyncio.create_task(engine.run())

    def engine(self, spec: EngineSpec, name: str, folder: Path, *gpus: str) -> Supervisor:
        (folder / name / "model").mkdir(parents=True)
        launch = replace(spec.launch, model=folder / name / "model")
        spec = replace(spec, name=name, launch=launch, log=folder / name / "log",
                       gpus=frozenset(gpus), turns=self.turns)  # fmt: skip
        self.engines[name] = Supervisor(spec, self.heard)
        return self.engines[name]

    def heard(self, status) -> None:
        self.phases.setdefault(status.name, []).append(status.phase)
        loads = sorted(name for name, seen in self.phases.items() if seen[-1] in LOADS)
        if len(loads) > 1:
            self.met.append(tuple(loads))


@pytest.fixture
async def host():
    made = Host(GpuLoadQueue())
    yield made
    await asyncio.wait_for(asyncio.gather(*(x.stop() for x in made.engines.values())), 60)
    await asyncio.gather(*made.runs.values())


async def test_engines_on_one_gpu_load_one_after_the_other(fake_spec, tmp_path, host) -> None:
    both = [host.engine(fake_spec(), name, tmp_path, "0") for name in ("first", "second")]
    host.start()
    for side in both:
        await side.wait_for(EnginePhase.SERVING, 60)
    for side in both:  # both wake at one time, as pools do that stop by night
        side.pause()
    for side in both:
        await side.wait_for(EnginePhase.RESTING, 60)
    for side in both:
        side.resume()
    for side in both:
        await side.wait_for(EnginePhase.SERVING, 60)
    assert host.met == []


async def test_an_engine_that_never_gets_ready_holds_up_no_other_gpu(
    fake_spec, tmp_path, host
) -> None:
    """The control: each on its own GPU, they load beside each other."""
    late = host.engine(fake_spec("late"), "late", tmp_path, "0")
    host.start()
    await late.wait_for(EnginePhase.LOADING, 60)
    other = host.engine(fake_spec(), "other", tmp_path, "1")
    host.start()
    await other.wait_for(EnginePhase.SERVING, 60)
    assert late.status.phase is EnginePhase.LOADING


async def test_who_crashes_while_it_loads_leaves_its_turn(fake_spec, tmp_path, host) -> None:
    bad = host.engine(fake_spec("crash", backoff_first_s=60.0), "bad", tmp_path, "0")
    good = host.engine(fake_spec(), "good", tmp_path, "0")
    host.start()
    await bad.wait_for(EnginePhase.BACKING_OFF, 60)
    await good.wait_for(EnginePhase.SERVING, 60)
    assert host.met == []


async def told_to_wait(engine: Supervisor) -> None:
    async with asyncio.timeout(60):
        while "first" not in engine.status.reason:  # noqa: ASYNC110  (published by callback)
            await asyncio.sleep(0.01)


async def test_who_waits_for_its_turn_says_so_and_can_be_stopped(fake_spec, tmp_path, host) -> None:
    assert host.turns.acquire("somebody", {"0"})
    waits = host.engine(fake_spec(), "waits", tmp_path, "0")
    host.start()
    await told_to_wait(waits)
    waits.pause()
    await waits.wait_for(EnginePhase.RESTING, 60)
    waits.resume()
    await told_to_wait(waits)
    await waits.stop()
    assert set(host.phases["waits"]) == {
        EnginePhase.STARTING,
        EnginePhase.RESTING,
        EnginePhase.STOPPED,
    }
    assert not (tmp_path / "waits" / "log").exists()
