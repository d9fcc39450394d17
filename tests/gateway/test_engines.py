"""Engines that `serve` runs: what they are started with, kept alive, and ended."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from gateway.engines import EngineSupervision, installed, limits, port_of
from gateway.runtime import EngineSeat, Ports, resolve
from gateway.settings import parse

TEXT = """
pools:
  sim:
    engine: {kind: simulated, model: rtx4090-llama-3.1-8b, replicas: 1, served_name: llama}
    gpu: {type: RTX 4090}
  real:
    engine: {kind: vllm, model: MODEL, replicas: 2, flags: [--max-num-seqs=7]}
    gpu: {type: H200}
"""


def seat(**changes) -> EngineSeat:
    fields = {
        "name": "pool:a/0", "pool": "a", "base_url": "http://127.0.0.1:8100/v1", "managed": True,
        "simulated": False, "served_name": "a", "max_num_seqs": 64, "prefill_budget_tokens": 2048,
    }  # fmt: skip
    return EngineSeat(**{**fields, **changes})


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
    ports = Ports({"pool:sim/0": port, "pool:real/0": 1, "pool:real/1": 2}, {})
    runtime = resolve(settings, ports, ledger_url="sqlite://", policy_version="v")
    said: list[str] = []

    def make(names: tuple[str, ...], ready=installed) -> EngineSupervision:
        kept = tuple(one for one in runtime.engines if one.pool in names)
        from msgspec.structs import replace  # noqa: PLC0415  (only here)

        return EngineSupervision(settings, replace(runtime, engines=kept), said.append, ready)

    make.said, make.port = said, port
    return make


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


async def test_nothing_waits_for_an_environment_that_nobody_needs(supervision) -> None:
    async def never() -> None:
        raise AssertionError("asked for")

    engines = supervision((), never)
    await engines.run()
    await engines.stop()


async def test_vllm_is_started_with_its_limits_and_model(supervision, tmp_path) -> None:
    engines = supervision(("real",))
    first = engines._runtime.engines[0]
    spec = engines._spec(first)
    assert spec.launch.flags == ("--max-num-batched-tokens", "2048", "--max-num-seqs=7")
    assert spec.launch.model == tmp_path / "model"
    assert spec.launch.environment.directory == (tmp_path / "engine").resolve()
    assert (spec.port, spec.launch.kind) == (1, "generate")


async def test_an_engine_that_cannot_start_is_told_and_holds_up_no_other(supervision) -> None:
    """There is no engine environment here: both replicas back off, each in its turn."""
    engines = supervision(("real",))
    async with asyncio.timeout(30):
        await engines.run()
    assert {line.partition(" ")[0] for line in supervision.said} == {"pool:real/0", "pool:real/1"}
    await engines.stop()
