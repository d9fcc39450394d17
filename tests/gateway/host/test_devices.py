"""GPUs of a host are dealt out to the engines that `serve` starts, each GPU to one of them."""

import pytest

from gateway.config.machines import machine_shares
from gateway.config.settings import parse
from gateway.host.devices import assign_gpus, memory
from gateway.runtime import RuntimePorts, resolve_runtime

POOL = "  {name}:\n    engine: {{kind: vllm, model: M, {engine}}}\n    gpu: {{type: H200{gpu}}}\n"


def dealt(visible: int, *pools: tuple[str, str, str]) -> dict[str, str]:
    """Each engine's GPUs, by (name, engine settings, gpu settings) of the pools."""
    text = "pools:\n" + "".join(POOL.format(name=n, engine=e, gpu=g) for n, e, g in pools)
    settings = parse(text, name="t")
    engines = {
        f"pool:{name}/{index}": 9000
        for name, pool in settings.pools.items()
        for index in range(pool.engine.replicas)
    }
    ports = RuntimePorts(engines, {})
    runtime = resolve_runtime(settings, ports, ledger_url="sqlite://", policy_version="v")
    found = assign_gpus(
        runtime.engines, settings.pools, [str(each_index) for each_index in range(visible)]
    )
    return {name.removeprefix("pool:"): ",".join(gpus) for name, gpus in found.items()}


TP = "flags: [--tensor-parallel-size=2, -pp, '2']"


@pytest.mark.parametrize(
    ("visible", "pools", "found"),
    [
        (2, [("a", "replicas: 2", "")], {"a/0": "0", "a/1": "1"}),
        (8, [("a", "replicas: 1", ""), ("b", "replicas: 2", ", count: 2")],
         {"a/0": "0", "b/0": "1,2", "b/1": "3,4"}),
        (8, [("a", f"replicas: 2, {TP}", "")], {"a/0": "0,1,2,3", "a/1": "4,5,6,7"}),
        (2, [("a", "replicas: 1", ", machine: m"), ("b", "replicas: 1", ", machine: m"),
             ("c", "replicas: 1", "")],
         {"a/0": "0", "b/0": "0", "c/0": "1"}),
        (4, [("a", "replicas: 1, endpoints: ['http://h:1/v1']", "")], {"a/0": "0"}),
        (1, [("a", "replicas: 2", "")], {}),
        (1, [("a", "replicas: 1", ""), ("b", "replicas: 1", "")], {}),
        (0, [("a", "replicas: 1", "")], {}),
    ],
    ids=["one each", "by pool", "as flags spread it", "a machine's pools share",
         "attached have none", "too few", "too few for all pools", "none"],
)  # fmt: skip
def test_each_engine_has_its_own_gpus(visible, pools, found) -> None:
    assert dealt(visible, *pools) == found


SHARED = """
pools:
  large:
    engine: {kind: vllm, model: M, replicas: 1}
    gpu: {type: H200, machine: m, share: 2}
  small:
    engine: {kind: vllm, model: N, replicas: 1}
    gpu: {type: H200, machine: m, share: 1}
  alone:
    engine: {kind: vllm, model: O, replicas: 1}
    gpu: {type: H200}
"""


def test_models_on_one_gpu_share_its_memory_as_they_share_its_rate() -> None:
    """Each takes nine tenths by itself: the second would find nothing free."""
    shared = machine_shares(parse(SHARED, name="t"))
    said = {name: memory(part, ()) for name, part in shared.items()}
    assert said == {
        "large": ("--gpu-memory-utilization", "0.6"),
        "small": ("--gpu-memory-utilization", "0.299"),  # of 0.3, less what was rounded off
        "alone": (),
    }
    for flags in (["--gpu-memory-utilization=0.4"], ["--gpu-memory-utilization", "0.4"]):
        assert memory(shared["small"], flags) == (), "a person's own"
