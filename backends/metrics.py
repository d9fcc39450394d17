"""Parser of an engine's metrics page (Prometheus text) into one frozen sample.

`backends.engines` has the reader of each engine kind; metric names identify the page's format.
"""

from dataclasses import fields
from typing import Final

from backends.engines import ENGINE_KINDS, VLLM
from backends.enginesample import EngineSample, ProbeFailed
from backends.otherengines import METRICS_PATH, MetricsDialect

__all__ = [
    "METRICS_PATH",
    "OTHER_PATHS",
    "VLLM",
    "EngineSample",
    "ProbeFailed",
    "is_json",
    "parse",
    "path_of",
]

_DIALECTS: Final[dict[str, MetricsDialect]] = {
    name: kind.dialect for name, kind in ENGINE_KINDS.items() if kind.dialect is not None
}
# Path of a page that is not at the usual place.
OTHER_PATHS: Final = tuple(
    dict.fromkeys(known.path for known in _DIALECTS.values() if known.path != METRICS_PATH)
)
_MOST: Final = 2**53  # above it the board's numbers are no longer exact
_FULL: Final = 1.01


def parse(page: str, dialect: str | None = None) -> EngineSample:
    """Return the sample of a page. Raises `ProbeFailed` if required metrics are missing.

    `dialect` names an engine kind with its own page format; without it, the metric names decide.
    """
    try:
        sample = _DIALECTS[dialect or _dialect_of(page)].read(page)
        _judge(sample)
    except (OverflowError, ValueError) as error:
        raise ProbeFailed(f"the metrics page has impossible figures: {error}") from error
    return sample


def _judge(sample: EngineSample) -> None:
    """Raise `ProbeFailed` for counts out of the ledger's range, or KV usage above 1."""
    for name in (field.name for field in fields(sample)):
        value = getattr(sample, name)
        if isinstance(value, int) and not 0 <= value < _MOST:
            raise ProbeFailed(f"its metrics page reports {value:,.3g} for {name}")
    usage = sample.kv_usage_ratio
    if usage is not None and usage > _FULL:
        raise ProbeFailed(f"its metrics page reports that {usage:.3g} times its KV cache is in use")


def path_of(dialect: str | None) -> str:
    """Return the path of the metrics page of a dialect, the usual path for `None`."""
    return METRICS_PATH if dialect is None else _DIALECTS[dialect].path


def is_json(page: str) -> bool:
    """Return whether the page is JSON, as `trtllm-serve` sends at /metrics."""
    return page.lstrip()[:1] in ("[", "{")


def _dialect_of(page: str) -> str:
    """Return the page's dialect, vLLM if unknown or if Triton passes vLLM's gauges on."""
    return next((name for name, known in _DIALECTS.items() if known.mark.search(page)), VLLM)
