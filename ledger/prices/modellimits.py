"""The longest answer each model gives, by the bundled map: what an answer without a limit may cost.

The map is read as a file, without importing LiteLLM, and named as the price book names its rows.
A model that it does not know has no limit here: nothing is guessed.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from ledger.prices.bundled import MAP_FILE, MODES, normalised

LIMIT_TOKENS = 10_000_000  # beyond any model's; larger numbers in the map are no limits
CONTEXT_UNSTATED = 1_000_000  # tokens that a prompt has at most where nobody states a context

_Number = int | float | str | None


class ModelLimits(NamedTuple):
    """Many rows give the context as the longest answer too, though the prompt takes its part."""

    output_tokens: int
    context_tokens: int

    @property
    def stated_context(self) -> int:
        """Return the context in tokens, 0 where the map states none."""
        return self.context_tokens if self.context_tokens < LIMIT_TOKENS else 0

    def max_output_tokens(self, prompt_tokens: int) -> int:
        """Return the longest answer after such a prompt, at least one token."""
        return max(1, min(self.output_tokens, self.context_tokens - prompt_tokens))


class _Row(msgspec.Struct):
    mode: str = ""
    litellm_provider: str = ""
    max_output_tokens: _Number = None
    max_input_tokens: _Number = None


@cache
def model_limits() -> Mapping[str, ModelLimits]:
    """Return limits by `provider/model`, from the installed map; empty without one.

    Read once: who forks workers has read it for all of them.
    """
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    return limits_from_map((Path(spec.submodule_search_locations[0]) / MAP_FILE).read_bytes())


def limits_from_map(text: bytes) -> dict[str, ModelLimits]:
    """Return the limits by name; a prefixed key wins over a bare one, as it does for prices."""
    rows = msgspec.json.decode(text, type=dict[str, _Row])
    limits: dict[str, ModelLimits] = {}
    for key, row in sorted(rows.items(), key=lambda item: "/" not in item[0]):
        output = _tokens(row.max_output_tokens)
        if row.mode in MODES and output is not None:
            context = _tokens(row.max_input_tokens) or LIMIT_TOKENS
            found = ModelLimits(output, max(output, context))
            limits.setdefault(normalised(key, row.litellm_provider), found)
    return limits


def _tokens(number: _Number) -> int | None:
    if isinstance(number, int | float) and 1 <= number <= LIMIT_TOKENS:
        return int(number)
    return None
