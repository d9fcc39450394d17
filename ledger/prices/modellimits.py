"""The longest answer of each model in the bundled map, to bound unlimited answers.

The map is read as a file, without importing LiteLLM, under the names of the price book. A model
that the map does not list has no limit here.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from ledger.prices.bundled import MAP_FILE, MODES, normalised

LIMIT_TOKENS = 10_000_000  # above every model's limit; larger numbers in the map are ignored
CONTEXT_UNSTATED = 1_000_000  # assumed maximum of a prompt where no context is stated

_Number = int | float | str | None


class ModelLimits(NamedTuple):
    """Maximum output and context of a model, in tokens.

    Many rows of the map state the context as the longest answer too, although the prompt uses part
    of it.
    """

    output_tokens: int
    context_tokens: int

    @property
    def stated_context(self) -> int:
        """Return the context in tokens, 0 if the map states none."""
        return self.context_tokens if self.context_tokens < LIMIT_TOKENS else 0

    def max_output_tokens(self, prompt_tokens: int) -> int:
        """Return the longest answer to a prompt of this length, at least one token."""
        return max(1, min(self.output_tokens, self.context_tokens - prompt_tokens))


class _Row(msgspec.Struct):
    mode: str = ""
    litellm_provider: str = ""
    max_output_tokens: _Number = None
    max_input_tokens: _Number = None


@cache
def model_limits() -> Mapping[str, ModelLimits]:
    """Return limits by `provider/model`, from the installed map; empty without LiteLLM.

    Cached: a parent that forks workers reads the map once for all of them.
    """
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    return limits_from_map((Path(spec.submodule_search_locations[0]) / MAP_FILE).read_bytes())


def limits_from_map(text: bytes) -> dict[str, ModelLimits]:
    """Return limits by name. A prefixed key wins over a bare one, as for prices."""
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
