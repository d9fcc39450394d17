"""Configuration of a first start: without a named model, the small included one is served.

It is written once as a plain YAML file that can be edited. The small model is a logical model of
its own and spills only to a simulated provider. Provider keys found in the environment become
pass-through models only on request and under a hard budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from backends.engine import shipped
from backends.engines import ENGINE_KINDS
from backends.providers import PROVIDER_KINDS

DAILY_BUDGET_USD = 1
SUBSTITUTE = "openai/gpt-4o-mini"
SAME_WEIGHTS = "deepinfra/meta-llama/Meta-Llama-3.1-8B-Instruct"
SIMULATED_PROFILE = "h200-llama-3.1-8b-fp8"
MACHINE = "this-machine"
CPU_RATE_USD = 0.0893
LAST_PORT = 65_535
CPU_RATE_SOURCE = (
    "assumed: AWS c7i.large (2 vCPU) on demand, us-east-1, list price of 2025; enter your own"
)


@dataclass(frozen=True, slots=True)
class StarterPorts:
    """Ports of a first start; an own configuration names its own.

    `engines` is the first port of own engines. Ports in `movable` were not chosen by the user: if
    one is taken, the next free one is used.
    """

    gateway: int
    dashboard: int
    engines: int = 8100
    movable: frozenset[str] = frozenset()


USUAL_PORTS = StarterPorts(8080, 8501)
MOVED_PORTS = 64  # offset of dashboard and engines from a chosen gateway port


def wanted_ports(gateway: int | None, dashboard: int | None) -> StarterPorts:
    """Return the ports for these options; a chosen gateway port moves all others."""
    movable = frozenset(
        name for name, port in (("gateway", gateway), ("dashboard", dashboard)) if port is None
    )
    if gateway is None:
        return StarterPorts(
            USUAL_PORTS.gateway, dashboard or USUAL_PORTS.dashboard, USUAL_PORTS.engines, movable
        )
    first = gateway + 1 if gateway + MOVED_PORTS <= LAST_PORT else gateway - MOVED_PORTS
    return StarterPorts(gateway, dashboard or first, first + 1, movable)


@dataclass(frozen=True, slots=True)
class KnownProvider:
    variable: str
    name: str
    kind: str


PROVIDERS = tuple(
    KnownProvider(variable, name, kind)
    for kind, entry in PROVIDER_KINDS.items()
    for name, variable in entry.variables.usual.items()
)


def find_providers(environ: Mapping[str, str]) -> tuple[KnownProvider, ...]:
    """Return the providers whose keys are in the environment."""
    return tuple(provider for provider in PROVIDERS if environ.get(provider.variable))


def configuration(
    state: Path,
    *,
    engine: str,
    gpu: str | None,
    keys: tuple[KnownProvider, ...],
    ports: StarterPorts = USUAL_PORTS,
) -> str:
    """Return the YAML of a first start.

    `engine` is vllm or simulated; `gpu` is the GPU's name, None on a CPU.
    """
    models = {
        "tiny": {
            "targets": ["pool:tiny", "standin/tiny"],
            "compare_with": [SUBSTITUTE, SAME_WEIGHTS],
        },
        "tiny-embed": {
            "targets": ["pool:tiny-embed"],
            "compare_with": ["openai/text-embedding-3-small"],
        },
        **{f"{provider.name}/*": "passthrough" for provider in keys},
    }
    providers = {
        "standin": {
            "simulated": True,
            "start": True,
            "prices_as": SUBSTITUTE,
            "kinds": ["chat", "completion"],
        },
        **{
            provider.name: {"kind": provider.kind, "api_key_env": provider.variable}
            for provider in keys
        },
    }
    document = {
        "state_dir": str(state),
        "server": {"port": ports.gateway},
        "dashboard": {"enabled": True, "port": ports.dashboard},
        "models": models,
        "pools": {
            "tiny": _pool(shipped.DIRECTORY, engine, gpu, "tiny", ports.engines),
            "tiny-embed": _embedding_pool(state, engine, gpu, ports.engines + 1),
        },
        "providers": providers,
        "policies": [{"name": "interactive", "slo": {"ttft_ms": 2000, "tpot_ms": 200}}],
        "budgets": [{"scope": "external", "usd": DAILY_BUDGET_USD, "period": "day", "hard": True}],
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


_HEAD = """\
# Written by `breakeven up` at every start without a configuration. To change it, copy it and
# start with `make run CONFIG=copy.yaml`. To serve a real model, set pools.tiny.engine.model to its
# directory (config.json, tokenizer, safetensors) and pools.tiny.gpu to your hardware and its rate.
# Both pools run on one machine: what they say of it must agree, or leave `machine` out in one.
"""


def _pool(place: Path, engine: str, gpu: str | None, model: str, port: int) -> dict[str, object]:
    simulated = ENGINE_KINDS[engine].simulated
    return {
        "engine": {
            "kind": engine,
            "model": SIMULATED_PROFILE if simulated else str(place),
            "served_name": model,
            "replicas": 1,
            "port": port,
            **({} if simulated else {"flags": ["--max-model-len", str(shipped.CONTEXT_TOKENS)]}),
        },
        "gpu": _hardware(gpu),
    }


def _embedding_pool(state: Path, engine: str, gpu: str | None, port: int) -> dict[str, object]:
    pool = _pool(state / "models" / "tiny-embed", engine, gpu, "tiny-embed", port)
    described = pool["engine"]
    assert isinstance(described, dict)
    described["kinds"] = ["embedding"]
    described.pop("flags", None)
    return pool


def _hardware(gpu: str | None) -> dict[str, object]:
    """Return the hardware section: a GPU's rate is left to its owner, a CPU has a public one.

    Both engines share the single GPU or CPU: its rate is counted once, half for each pool.
    """
    if gpu is not None:
        return {"type": gpu, "machine": MACHINE, "billing": "owned"}
    return {
        "type": "CPU",
        "machine": MACHINE,
        "billing": "owned",
        "usd_per_hour": CPU_RATE_USD,
        "source": CPU_RATE_SOURCE,
    }
