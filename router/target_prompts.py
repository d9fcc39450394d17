"""Prompt tokens that targets bill beyond their bounds, learned by target.

Pictures and sounds have a factor: billed tokens for each token of the bound. A context has the
maximum tokens of a prompt that was read although the stated context is smaller. The next prompt of
that team is held for twice the recent maximum, within limits; those of other teams for what two
teams saw (`router.team_peaks`). Observations halve in a day. State is one row of
`router.estimate_rows` for each key, as in `router.target_output`. `now_s` is wall clock time.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from router.estimate_rows import FIRST, EstimateRows, KeyedEstimator, RowKey
from router.estimator_rules import AGING_S, PROMPT_HALF_LIFE_S, share_left
from router.target_output import MARGIN, SLOTS, target_key
from router.team_peaks import TeamPeak

# The dearest picture of any published rule has 48,169 tokens, GPT-4o mini's (2026-11). The cheapest
# have one. Below the minimum, a factor refers to the minimum.
PICTURE_LIMIT_TOKENS, PICTURE_LEAST_TOKENS = 50_000, 1_000
PICTURE_FACTOR_LIMIT = PICTURE_LIMIT_TOKENS / PICTURE_LEAST_TOKENS
# A sound is held at 50 tokens a second, as the densest encoder of a model that reads sound has.
SOUND_FACTOR_LIMIT = 4.0
CONTEXT_LIMIT_TOKENS = 2_000_000  # the largest that an API offers (2026-11)
FADED = 0.01  # a smaller factor counts as none

PROMPT_CELLS: Final = 13
_SEEN, _AGED = 11, 12
_PICTURES: Final = TeamPeak(2, 3, 4, PICTURE_FACTOR_LIMIT, FADED)
_SOUNDS: Final = TeamPeak(5, 6, 7, SOUND_FACTOR_LIMIT, FADED)
_CONTEXT: Final = TeamPeak(8, 9, 10, CONTEXT_LIMIT_TOKENS, 1.0)
_PEAKS: Final = (_PICTURES, _SOUNDS, _CONTEXT)


class PromptOverrun(NamedTuple):
    """Billed tokens per held token of pictures and sounds, and `context` in tokens; 0: none."""

    pictures: float = 0.0
    sounds: float = 0.0
    context: int = 0


class PromptRow(NamedTuple):
    """The overrun of one target that its next prompts are held for."""

    slot: int
    overrun: PromptOverrun
    seen_s: float


class TargetPrompts(KeyedEstimator):
    """Bounds of prompts by target. All workers of a host read each new observation at once."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """Use the given shared memory; `cells` and `placed` are those of `EstimateRows`."""
        slots = SLOTS if cells is None else len(cells) // PROMPT_CELLS - 1
        super().__init__(EstimateRows(PROMPT_CELLS, slots, _SEEN, cells, placed), _AGED, _age)

    def observe(self, target: str, overrun: PromptOverrun, now_s: float, *, team: str = "") -> None:
        """Record a prompt of a team that was billed beyond its bound."""
        prior = (*(0.0,) * 9, now_s, now_s)
        view = self._rows.claim(target_key(target), prior, now_s)
        if not 0.0 <= now_s - view[_AGED] < AGING_S:
            row: list[float] = view.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
            _age(row, now_s)
            for cell in range(FIRST, PROMPT_CELLS):
                view[cell] = row[cell]
        for peak, seen in zip(_PEAKS, overrun, strict=True):
            peak.note(view, team, seen)
        view[_SEEN] = now_s
        self._rows.touch()

    def overrun(self, target: str, team: str = "") -> PromptOverrun | None:
        """Return the overrun that a team's next prompt is held for; `None` if none was observed."""
        view = self._rows.look(target_key(target))
        return None if view is None else _held(*(peak.seen(view, team) for peak in _PEAKS))

    def rows(self) -> Iterator[PromptRow]:
        """Yield the maximum overrun of any team at every target, in no order."""
        for slot, row in self._rows.rows():
            yield PromptRow(slot, _held(*(peak.most(row) for peak in _PEAKS)), row[_SEEN])


def _held(pictures: float, sounds: float, context: float) -> PromptOverrun:
    return PromptOverrun(
        min(MARGIN * pictures, PICTURE_FACTOR_LIMIT),
        min(MARGIN * sounds, SOUND_FACTOR_LIMIT),
        min(MARGIN * int(context), CONTEXT_LIMIT_TOKENS),
    )


def _age(row: list[float], now_s: float) -> None:
    left = share_left(now_s - row[_AGED], PROMPT_HALF_LIFE_S)
    for peak in _PEAKS:
        peak.fade(row, left)
    row[_AGED] = now_s
