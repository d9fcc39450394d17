"""Token estimates of untokenised text, learned by model and team, within physical limits.

The model is affine: a template around every prompt, and bytes times a ratio. The bound of a prompt
does not depend on the ratio: a token is at least one byte of input, so the bound is the bytes plus
the template. The template is 64 tokens until answers show more, at most 2,048, and any answer with
fewer tokens refutes it. `router.estimator_rules` has the figures. The shortfall of estimates is
learned too, as the margin that a prompt needs in a context. State is one row of
`router.estimate_rows` for each key, a model and a team.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from math import ceil, sqrt
from typing import Final, NamedTuple

from router.estimate_rows import EstimateRows, KeyedEstimator, RowKey
from router.estimator_rules import (
    AGING_S,
    CONTEXT_MARGIN,
    RATIO_HALF_LIFE_S,
    RATIO_STEP,
    Objection,
    share_left,
)

PRIOR_BYTES_PER_TOKEN = 4.0  # English prose in byte-pair vocabularies, until the model's is seen
LONGEST_TOKEN_BYTES = 128.0  # a row of blanks, in OpenAI's vocabularies
MOST_TOKENS_PER_BYTE = 4.0  # a normaliser may spell one character out in several
TEMPLATE_TOKENS = 64  # marks of turns and a short system prompt
TEMPLATE_LIMIT = 2048  # the longest that a target may put around a prompt
PRIOR_BYTES = 4096.0  # what the prior weighs, beside the bytes that were seen
EVIDENCE_BYTES = 16_384  # maximum weight of one observation
FADE = 256.0  # observations after which one weighs a third
REFUTED = 64.0  # observations that refute a template, until a third of it is left
UNCONFIRMED = 256.0  # observations that do not show it, until a third of it is left
MARGIN_ERRORS = 3.0  # a margin is this many root mean squares of the shortfall
MARGIN_BYTES = (
    8 * EVIDENCE_BYTES
)  # what the margin at first weighs, beside the bytes that were seen
MARGIN_LIMIT = 1.5
SLOTS = 4096


class RatioCell(IntEnum):
    """Cells of one key; 0 in `TEAM` marks a free row."""

    TEAM = 0  # numbers made of the names
    MODEL = 1
    SIZE_BYTES = 2
    TOKENS = 3
    TEMPLATE = 4
    COUNT = 5
    SEEN_S = 6  # wall clock, as is the next: a file outlives its host's start
    AGED_S = 7
    SHORT = 8  # squares of the shortfall of estimates, weighted by bytes


ROW_CELLS: Final = len(RatioCell)
# Plain numbers: members of an enumeration cost time as indices.
_, _, _SIZE, _TOKENS, _TEMPLATE, _COUNT, _SEEN, _AGED, _SHORT = range(ROW_CELLS)
_SHORT_PRIOR = MARGIN_BYTES * ((CONTEXT_MARGIN - 1.0) / MARGIN_ERRORS) ** 2
_LEAST, _KEPT = 1.0 / LONGEST_TOKEN_BYTES, 1.0 - 1.0 / FADE


class RatioRow(NamedTuple):
    """The learned values of one key."""

    slot: int
    bytes_per_token: float
    template_tokens: int
    observations: int
    seen_s: float
    margin: float


class TokenRatio(KeyedEstimator):
    """Estimates and bounds of prompts. `now_s` is wall clock time in seconds."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """Use the given shared memory; `cells` and `placed` are those of `EstimateRows`."""
        slots = SLOTS if cells is None else len(cells) // ROW_CELLS - 1
        super().__init__(EstimateRows(ROW_CELLS, slots, _SEEN, cells, placed), _AGED, _age)

    def estimate(self, key: RowKey, size_bytes: int) -> tuple[int, int]:
        """Return (estimate, bound) of a prompt in tokens; the estimate never exceeds the bound."""
        row = self._look(key)
        if row is None:
            bound = size_bytes + TEMPLATE_TOKENS
            return min(max(1, ceil(size_bytes / PRIOR_BYTES_PER_TOKEN)), bound), bound
        template = ceil(_template(row))
        tokens = ceil(size_bytes * _ratio(row)) + template - TEMPLATE_TOKENS
        bound = size_bytes + template
        return min(max(1, tokens), bound), bound

    def margin(self, key: RowKey) -> float:
        """Return the factor, at least 1, by which a prompt may exceed its estimate.

        The margin is not a guarantee: a target refuses a longer prompt before it does any work.
        """
        row = self._look(key)
        return CONTEXT_MARGIN if row is None else _margin(row)

    def text_tokens(self, key: RowKey, size_bytes: int) -> int:
        """Return the estimated tokens of a text without a template."""
        row = self._look(key)
        return ceil(size_bytes * (1.0 / PRIOR_BYTES_PER_TOKEN if row is None else _ratio(row)))

    def observe(self, key: RowKey, size_bytes: int, tokens: int, now_s: float) -> Objection | None:
        """Learn from one text-only prompt. Return the objection if the observation is not used."""
        objection = impossible(size_bytes, tokens)
        if objection is not None:
            return objection
        view = self._rows.look(key)
        if view is None:
            prior = PRIOR_BYTES, PRIOR_BYTES / PRIOR_BYTES_PER_TOKEN, TEMPLATE_TOKENS, 0.0
            view = self._rows.claim(key, (*prior, now_s, now_s, 0.0), now_s)
        row: list[float] = view.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
        if not 0.0 <= now_s - row[_AGED] < AGING_S:
            _age(row, now_s)
            view[_AGED], view[_TEMPLATE] = now_s, row[_TEMPLATE]
        template = _template(row)
        if template > TEMPLATE_TOKENS or tokens > size_bytes + TEMPLATE_TOKENS:
            view[_TEMPLATE] = _template_after(template, size_bytes, tokens)
        told = tokens - template + TEMPLATE_TOKENS
        view[_SHORT] = _short_after(row, size_bytes, told)
        size_sum, token_sum = _weighed(row, size_bytes, told)
        view[_SIZE], view[_TOKENS], view[_COUNT] = size_sum, token_sum, row[_COUNT] + 1.0
        view[_SEEN] = now_s
        return None

    def rows(self) -> Iterator[RatioRow]:
        """Yield the learned values of every key, in no order."""
        for slot, row in self._rows.rows():
            yield RatioRow(
                slot, 1.0 / _ratio(row), ceil(_template(row)), int(row[_COUNT]), row[_SEEN],
                _margin(row),
            )  # fmt: skip

    def _look(self, key: RowKey) -> list[float] | None:
        """Return the cells of the key's row, or `None` if it has none."""
        view = self._rows.look(key)
        return None if view is None else view.tolist()  # type: ignore[return-value]  # the stubs think of bytes only


def impossible(size_bytes: int, tokens: int) -> Objection | None:
    """Return why a text of this size cannot have this many tokens; `None` if it can."""
    if tokens > size_bytes + TEMPLATE_LIMIT:
        return Objection.TOO_MANY
    if tokens * LONGEST_TOKEN_BYTES < size_bytes or tokens <= 0 or size_bytes <= 0:
        return Objection.TOO_FEW
    return None


def _ratio(row: list[float]) -> float:
    """Return tokens per byte, clamped to valid limits whatever the cells hold."""
    ratio = row[_TOKENS] / row[_SIZE] if row[_SIZE] > 0.0 else 0.0
    if _LEAST <= ratio <= MOST_TOKENS_PER_BYTE:
        return ratio
    return MOST_TOKENS_PER_BYTE if ratio > MOST_TOKENS_PER_BYTE else _LEAST


def _margin(row: list[float]) -> float:
    """Return the margin, clamped to its limits whatever the cells hold."""
    size, short = max(0.0, row[_SIZE]), max(0.0, row[_SHORT])
    mean = (_SHORT_PRIOR + short) / (MARGIN_BYTES + size)
    return min(MARGIN_LIMIT, 1.0 + MARGIN_ERRORS * sqrt(mean))


def _short_after(row: list[float], size: float, told: float) -> float:
    """Return the sum of squares with one more observation, which counts at most `RATIO_STEP`."""
    by = min(told / max(1.0, size * _ratio(row)), RATIO_STEP) - 1.0
    return _KEPT * max(0.0, row[_SHORT]) + min(size, EVIDENCE_BYTES) * max(0.0, by) ** 2


def _template(row: list[float]) -> float:
    template = row[_TEMPLATE]
    return template if TEMPLATE_TOKENS <= template <= TEMPLATE_LIMIT else float(TEMPLATE_TOKENS)


def _template_after(template: float, size_bytes: int, tokens: int) -> float:
    """Return the template after one more observation.

    It rises at once to the observed length, at most to twice its value. A prompt with fewer tokens
    than the template refutes it; a prompt that does not show it lowers it more slowly.
    """
    if tokens > size_bytes + template:
        return float(min(tokens - size_bytes, 2.0 * template, TEMPLATE_LIMIT))
    if tokens >= template and tokens > size_bytes + TEMPLATE_TOKENS:
        return template
    beyond = template - TEMPLATE_TOKENS
    beyond -= beyond / (REFUTED if tokens < template else UNCONFIRMED)
    return TEMPLATE_TOKENS + (beyond if beyond >= 1.0 else 0.0)


def _weighed(row: list[float], size: float, told: float) -> tuple[float, float]:
    """Return the sums with one more observation, limited to a change of `RATIO_STEP`."""
    size_sum, token_sum = _KEPT * row[_SIZE], _KEPT * row[_TOKENS]
    if not (size_sum > 0.0 and token_sum > 0.0):  # cells damaged by a crash or a bad disk
        size_sum, token_sum = PRIOR_BYTES, PRIOR_BYTES / PRIOR_BYTES_PER_TOKEN
    if told * LONGEST_TOKEN_BYTES < size:
        told = size / LONGEST_TOKEN_BYTES
    elif told > size * MOST_TOKENS_PER_BYTE:
        told = size * MOST_TOKENS_PER_BYTE
    if size > EVIDENCE_BYTES:
        told *= EVIDENCE_BYTES / size
        size = EVIDENCE_BYTES
    expected = token_sum / size_sum * size
    if told > RATIO_STEP * expected:
        part = (RATIO_STEP - 1.0) * token_sum / (told - RATIO_STEP * expected)
    elif told < expected / RATIO_STEP:
        part = (1.0 - 1.0 / RATIO_STEP) * token_sum / (expected / RATIO_STEP - told)
    else:
        return size_sum + size, token_sum + told
    part = min(part, 1.0)
    return size_sum + part * size, token_sum + part * told


def _age(row: list[float], now_s: float) -> None:
    """Fade a row towards the prior."""
    kept = share_left(now_s - row[_AGED], RATIO_HALF_LIFE_S)
    size, tokens = PRIOR_BYTES, PRIOR_BYTES / PRIOR_BYTES_PER_TOKEN
    row[_SIZE] = size + kept * (row[_SIZE] - size)
    row[_TOKENS] = tokens + kept * (row[_TOKENS] - tokens)
    row[_TEMPLATE] = TEMPLATE_TOKENS + kept * (_template(row) - TEMPLATE_TOKENS)
    row[_SHORT] *= kept
    row[_AGED] = now_s
