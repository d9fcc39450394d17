"""Engine kinds: the servers of own models, and all that the product needs of each.

`ENGINE_KINDS` is the only table. `pools.NAME.engine.kind` of the configuration selects a kind that
`serve` can start, `engine.metrics` one with its own metrics page. A new attached engine is a page
reader and an entry here; one that `serve` starts also has a program that builds its command line.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from backends.engine.program import VLLM_PROGRAM, EngineProgram
from backends.otherengines import (
    LLAMA_CPP,
    METRICS_PATH,
    SGLANG,
    TENSORRT_LLM,
    TGI,
    TRITON,
    MetricsDialect,
)
from backends.vllm_metrics import MARK, read_vllm

if TYPE_CHECKING:
    from backends.simulator.profiles import EnginePreset

VLLM: Final = "vllm"
SIMULATED: Final = "simulated"


class ChildLaunch(NamedTuple):
    """One engine that runs as an unsupervised child. `adapters` are names, not folders."""

    model: str
    served_name: str
    port: int
    flags: tuple[str, ...]
    adapters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """Properties of an engine kind. An entry without a field is a type error.

    `dialect`: the format of its metrics page, `None` for vLLM's. `program` or `child`: how `serve`
    starts it; an engine with neither can only be attached. `takes_profile`: it accepts flags found
    by `engine tune`. `tells_cache`: it publishes its prefix cache (`kv_events`). `moves_kv`: it can
    transfer a prompt's KV to another engine (`roles`). `profile`: the parameters of a simulated
    engine, by model name.
    """

    dialect: MetricsDialect | None
    program: EngineProgram | None
    child: Callable[[ChildLaunch], list[str]] | None
    simulated: bool
    takes_profile: bool
    tells_cache: bool
    moves_kv: bool
    profile: "Callable[[str | None], EnginePreset | None]"

    @property
    def starts(self) -> bool:
        return self.program is not None or self.child is not None


def _no_profile(_model: str | None) -> "EnginePreset | None":
    return None


def _simulated_profile(model: str | None) -> "EnginePreset | None":
    from backends.simulator.shapefile import profile_of  # noqa: PLC0415  (few configurations have one)

    return profile_of(model)


def _simulator_command(launch: ChildLaunch) -> list[str]:
    return [
        *(sys.executable, "-m", "backends.simulator.server"),
        *("--profile", launch.model, "--model", launch.served_name),
        *("--port", str(launch.port), *launch.flags),
        *(["--lora-modules", *launch.adapters] if launch.adapters else []),
    ]


def _attached_kind(dialect: MetricsDialect) -> EngineKind:
    """Return the entry of an engine that can only be attached, known by its metrics page."""
    return EngineKind(
        dialect=dialect,
        program=None,
        child=None,
        simulated=False,
        takes_profile=False,
        tells_cache=False,
        moves_kv=False,
        profile=_no_profile,
    )


ENGINE_KINDS: Final[Mapping[str, EngineKind]] = {
    VLLM: EngineKind(
        # First, because a page of Triton with vLLM's gauges is read as vLLM's.
        dialect=MetricsDialect(MARK, read_vllm, METRICS_PATH),
        program=VLLM_PROGRAM,
        child=None,
        simulated=False,
        takes_profile=True,
        tells_cache=True,
        moves_kv=True,
        profile=_no_profile,
    ),
    SIMULATED: EngineKind(
        dialect=None,
        program=None,
        child=_simulator_command,
        simulated=True,
        takes_profile=False,
        tells_cache=False,
        moves_kv=True,
        profile=_simulated_profile,
    ),
    "sglang": _attached_kind(SGLANG),
    "tgi": _attached_kind(TGI),
    "tensorrt-llm": _attached_kind(TENSORRT_LLM),
    "triton": _attached_kind(TRITON),
    "llama.cpp": _attached_kind(LLAMA_CPP),
}
STARTED: Final = tuple(name for name, kind in ENGINE_KINDS.items() if kind.starts)
METERED: Final = tuple(name for name, kind in ENGINE_KINDS.items() if kind.dialect is not None)
