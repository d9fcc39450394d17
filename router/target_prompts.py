"""Learns how far each target bills prompts beyond their bounds.

Pictures and sounds have a factor: billed tokens for each token of the bound. A context has the most
tokens of a prompt that was read though less was stated. The next prompt is held for twice the most
of late, within limits: a false figure raises the hold of others by so much, and what was seen
halves in a day.

State is one row of `router.estimate_rows` for each key, as of `router.target_output`. `now_s` is
wall clock.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from router.estimate_rows import EstimateRows, RowKey
from router.estimator_rules import AGING_S, PROMPT_HALF_LIFE_S, share_left
from router.target_output import MARGIN, SLOTS, target_key

# The dearest picture of any published rule has 48,169 tokens, GPT-4o mini's (2026-11). The cheapest
# have one: to all below the least, a factor is of the least.
PICTURE_LIMIT_TOKENS, PICTURE_LEAST_TOKENS = 50_000, 1_000
PICTURE_FACTOR_LIMIT = PICTURE_LIMIT_TOKENS / PICTURE_LEAST_TOKENS
# A sound is held at 50 tokens a second, as the densest encoder of a model that reads sound has.
SOUND_FACTOR_LIMIT = 4.0
CONTEXT_LIMIT_TOKENS = 2_000_000  # the largest that an API offers (2026-11)
FADED = 0.01  # of a factor: less is none

PROMPT_CELLS: Final = 7
_, _, _PICTURES, _SOUNDS, _CONTEXT, _SEEN, _AGED = range(PROMPT_CELLS)


class PromptOverrun(NamedTuple):
    """Billed tokens for each token that was held; `context`: tokens. 0 where there are none."""

    pictures: float = 0.0
    sounds: float = 0.0
    context: int = 0


class PromptRow(NamedTuple):
    """One target with what its next prompts are held for."""

    slot: int
    overrun: PromptOverrun
    seen_s: float


class TargetPrompts:
    """Bounds of prompts. A worker reads at once what another one of its host observed."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """`cells` and `placed` as `EstimateRows` has them."""
        slots = SLOTS if cells is None else len(cells) // PROMPT_CELLS - 1
        self._rows = EstimateRows(PROMPT_CELLS, slots, _SEEN, cells, placed)

    def close(self) -> None:
        """Let go of the memory."""
        self._rows.close()

    def observe(self, target: str, overrun: PromptOverrun, now_s: float) -> None:
        """Take note of a prompt that was billed beyond its bound."""
        prior = (0.0, 0.0, 0.0, now_s, now_s)
        view = self._rows.claim(target_key(target), prior, now_s)
        row: list[float] = view.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
        if not 0.0 <= now_s - row[_AGED] < AGING_S:
            _age(row, now_s)
        seen = _within(row)
        view[_PICTURES] = max(seen.pictures, min(overrun.pictures, PICTURE_FACTOR_LIMIT))
        view[_SOUNDS] = max(seen.sounds, min(overrun.sounds, SOUND_FACTOR_LIMIT))
        view[_CONTEXT] = float(max(seen.context, min(overrun.context, CONTEXT_LIMIT_TOKENS)))
        view[_AGED], view[_SEEN] = row[_AGED], now_s
        self._rows.touch()

    def overrun(self, target: str) -> PromptOverrun | None:
        """Return what the target's next prompt is held for; None where nothing was seen."""
        view = self._rows.look(target_key(target))
        if view is None:
            return None
        row: list[float] = view.tolist()  # type: ignore[assignment]  # as above
        return _held(row)

    def age(self, now_s: float) -> None:
        """Let every target forget what is old, and drop those that nobody asked for."""
        self._rows.age(now_s, _AGED, _age)

    def forget(self, target: str | None) -> int:
        """Drop what is known of a target (None: of all); returns of how many."""
        return self._rows.forget(target, None)

    def rows(self) -> Iterator[PromptRow]:
        """Return what every target is held for, in no order."""
        for slot, row in self._rows.rows():
            yield PromptRow(slot, _held(row), row[_SEEN])


def _held(row: list[float]) -> PromptOverrun:
    seen = _within(row)
    return PromptOverrun(
        min(MARGIN * seen.pictures, PICTURE_FACTOR_LIMIT),
        min(MARGIN * seen.sounds, SOUND_FACTOR_LIMIT),
        min(MARGIN * seen.context, CONTEXT_LIMIT_TOKENS),
    )


def _within(row: list[float]) -> PromptOverrun:
    """Return what was seen, within the limits whatever the cells hold."""
    pictures, sounds, context = row[_PICTURES], row[_SOUNDS], row[_CONTEXT]
    return PromptOverrun(
        min(pictures, PICTURE_FACTOR_LIMIT) if pictures > 0.0 else 0.0,
        min(sounds, SOUND_FACTOR_LIMIT) if sounds > 0.0 else 0.0,
        int(min(context, CONTEXT_LIMIT_TOKENS)) if context > 0.0 else 0,
    )


def _age(row: list[float], now_s: float) -> None:
    kept = share_left(now_s - row[_AGED], PROMPT_HALF_LIFE_S)
    pictures, sounds, context = (kept * seen for seen in _within(row))
    row[_PICTURES] = pictures if pictures >= FADED else 0.0
    row[_SOUNDS] = sounds if sounds >= FADED else 0.0
    row[_CONTEXT] = context if context >= 1.0 else 0.0
    row[_AGED] = now_s
