"""Input of a plan, and its output: figures with the arithmetic behind them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from backends.engine.loadfloor import UserLoad
from backends.engine.modelconfig import ModelConfig

GPUS_PER_HOST = 8
SIZES = (1, 2, 4, 8)  # sizes of tensor-parallel groups, in GPUs


@dataclass(frozen=True, slots=True)
class PlanFigure:
    """A number with its unit and the arithmetic that leads to it."""

    name: str
    value: float
    unit: str
    formula: str


Figures = tuple[PlanFigure, ...]


def value(figures: Iterable[PlanFigure], name: str) -> float:
    return next(figure.value for figure in figures if figure.name == name)


@dataclass(frozen=True, slots=True)
class ParallelLayout:
    """A parallel layout: each layer is split `tensor` ways, layers form `pipeline` stages."""

    tensor: int = 1
    pipeline: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline

    def __str__(self) -> str:
        if self.pipeline == 1:
            return f"TP{self.tensor}" if self.tensor > 1 else "1 GPU"
        return f"PP{self.pipeline}" if self.tensor == 1 else f"TP{self.tensor} x PP{self.pipeline}"


@dataclass(frozen=True, slots=True)
class DraftModel:
    """A small model that proposes `drafted` tokens per step, each accepted with `acceptance`.

    `place` is the path or name from which vLLM loads the model; if empty, the model's name.
    """

    model: ModelConfig
    drafted: int = 5
    acceptance: float = 0.8
    place: str = ""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Input of a plan. `tensor_parallel=None` takes the fewest GPUs that hold the model."""

    tensor_parallel: int | None = None
    pipeline_parallel: int = 1
    gpus_per_host: int = GPUS_PER_HOST
    context_tokens: int | None = None
    prompt_tokens: int = 512
    gpu_memory_utilization: float = 0.9
    kv_dtype: Literal["auto", "fp8"] = "auto"
    batched_tokens: int | None = None
    load: UserLoad | None = None  # the users' load, for its minimum cost
    tpot_ms: float | None = None  # limit of the time per output token after the first
    ttft_ms: float | None = None  # limit of the time to the first token
    draft: DraftModel | None = None
