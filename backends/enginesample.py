"""One reading of an engine's metrics page, in a common form for all engine kinds."""

from dataclasses import dataclass


class ProbeFailed(Exception):
    """An engine answered with unusable metrics; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One reading. `None` means not reported, which is not 0.

    Totals count since the engine started and fall when it restarts. `dialect` names the page's
    format.
    """

    running: int | None
    waiting: int | None
    kv_usage_ratio: float | None
    kv_capacity_tokens: int | None
    kv_block_tokens: int | None
    preemptions_total: int | None
    prompt_tokens_total: int | None
    generation_tokens_total: int | None
    prefix_query_tokens_total: int | None
    prefix_hit_tokens_total: int | None
    started_at_s: float | None
    """Unix time at which the engine's process started; tells a restart from a quiet engine."""
    dialect: str = "vllm"

    @property
    def load(self) -> int | None:
        """Return the running and waiting sequences, `None` if neither is reported."""
        if self.running is None and self.waiting is None:
            return None
        return (self.running or 0) + (self.waiting or 0)

    @property
    def kv_free_tokens(self) -> int | None:
        if self.kv_capacity_tokens is None or self.kv_usage_ratio is None:
            return None
        return int(self.kv_capacity_tokens * (1.0 - self.kv_usage_ratio))
