"""Output that targets make beyond their limit or do not show: bounds learned by target.

Overrun: output billed beyond the limit, as hidden reasoning is at some targets. The next answer to
that team is held for twice the recent maximum, to other teams for what two teams saw. Bills of
requests that ask to think count for such requests only, unless prices state it (`reasoning:
outside`). Observations halve in a day. A target that ignores the limit's newer name gets both
names. Unseen: whether a target hides reasoning, and its speed, to book attempts that were given up.
The unknown prior is the most; a rate is forgotten after a silent half-life. State is one
`router.estimate_rows` row for each (target, provider) key. `now_s` is wall clock.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from router.estimate_rows import EstimateRows, KeyedEstimator, RowKey, number_of
from router.estimator_rules import (
    AGING_S,
    OVERRUN_HALF_LIFE_S,
    UNSEEN_HALF_LIFE_S,
    UNSEEN_STEP,
    share_left,
)
from router.team_peaks import TeamPeak

MARGIN = 2  # times the most that was seen
OVERRUN_LIMIT = 200_000  # tokens: no model answers at greater length (2026-11)
RATE_LIMIT_PER_S = 20_000.0  # above any model's; what came in one burst would be endless
KEEP = 0.99  # share of the rate kept at each slower answer: half is left after about 70
LEAST_S = 0.1  # shorter durations are not used for a rate
USUAL_RATE_PER_S = 1000.0  # few models are faster (2026-11): where the first answers step from
LEAST_RATE_PER_S = 10.0  # below any model's: the lowest rate that a step starts from
TEXT_BYTES_PER_TOKEN = 2  # fewer than in any text, so that shown output does not count as hidden
BELIEVED = 0.25  # what is left of one answer that showed it after two half-lives
SLOTS = 1024

OUTPUT_CELLS: Final = 16
# The most output beyond a limit that two teams saw, whether it is told twice, tokens a second,
# whether it hides; answers, and times; the most output beyond the limit of a request that asked to
# think; the team that saw it hide last, and what is left of that; the team that saw the most output
# beyond a limit, and how much; the same of requests that asked to think.
(
    _, _, _OVERRUN, _TWICE, _RATE, _HIDES, _COUNT, _SEEN, _AGED, _THOUGHT, _TEAM, _TEAM_HIDES,
    _TEAM_OVER, _TEAM_OVERRUN, _TEAM_THINKS, _TEAM_THOUGHT,
) = range(OUTPUT_CELLS)  # fmt: skip
_PLAIN: Final = TeamPeak(_OVERRUN, _TEAM_OVER, _TEAM_OVERRUN, OVERRUN_LIMIT, least=1.0)
_THINKS: Final = TeamPeak(_THOUGHT, _TEAM_THINKS, _TEAM_THOUGHT, OVERRUN_LIMIT, least=1.0)
_ANY_OVERRUN: Final = (*_PLAIN.seen_cells, *_THINKS.seen_cells)


class EndedAnswer(NamedTuple):
    """A finished answer: reported tokens; `first_s` until a stream's first content."""

    output: int
    reasoning: int
    said_bytes: int
    first_s: float | None
    duration_s: float


class OutputRow(NamedTuple):
    """The learned bounds of one target; `tokens_per_s` is `None` if no rate is known."""

    slot: int
    allowance_tokens: int
    tokens_per_s: float | None
    hides: bool
    observations: int
    seen_s: float


class TargetOutput(KeyedEstimator):
    """Bounds of output by target. All workers of a host read each new observation at once."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """Use the given shared memory; `cells` and `placed` are those of `EstimateRows`."""
        slots = SLOTS if cells is None else len(cells) // OUTPUT_CELLS - 1
        super().__init__(EstimateRows(OUTPUT_CELLS, slots, _SEEN, cells, placed), _AGED, _age)
        self._looked_at, self._has_overruns = -1.0, False  # by the rows' mark

    def observe_overrun(
        self, target: str, tokens: int, now_s: float, *, team: str = "", thinks: bool = False
    ) -> None:
        """Record an answer to a team with `tokens` of a choice beyond its limit.

        `thinks` is true if its request asked to think.
        """
        view = self._row(target, now_s)
        (_THINKS if thinks else _PLAIN).note(view, team, tokens)
        view[_SEEN] = now_s
        self._rows.touch()

    def observe_unknown_limit(self, target: str, now_s: float) -> None:
        """Record that a target exceeded its limit because it ignores the limit's newer name."""
        view = self._row(target, now_s)
        view[_TWICE] = 1.0
        view[_SEEN] = now_s
        self._rows.touch()

    def is_told_twice(self, target: str) -> bool:
        """Return whether requests to a target also send the limit under its older name."""
        view = self._rows.look(target_key(target))
        return view is not None and view[_TWICE] > BELIEVED

    def has_overruns(self) -> bool:
        """Return whether any target exceeded a limit; if not, no target need be checked."""
        if (mark := self._rows.mark) != self._looked_at:
            self._has_overruns = any(
                row[_TWICE] or any(row[cell] for cell in _ANY_OVERRUN)
                for _, row in self._rows.rows()
            )
            self._looked_at = mark
        return self._has_overruns

    def allowance(self, target: str, team: str = "", *, thinks: bool = False) -> int:
        """Return the tokens of a choice beyond its limit that an answer to a team is held for.

        `thinks` is true if its request asks to think. Overruns of other requests count there, too.
        """
        view = self._rows.look(target_key(target))
        if view is None:
            return 0
        seen = _PLAIN.seen(view, team)
        if thinks:
            seen = max(seen, _THINKS.seen(view, team))
        return _allowance(seen) if seen else 0

    def observe(self, target: str, answer: EndedAnswer, now_s: float, *, team: str = "") -> None:
        """Learn how fast the target was for a team, and whether it hid output."""
        view = self._row(target, now_s)
        rate = answer.output / max(answer.duration_s, LEAST_S)
        if answer.first_s is not None:
            told = answer.said_bytes // TEXT_BYTES_PER_TOKEN
            hidden = min(answer.reasoning, max(0, answer.output - told))
            if hidden:
                rate = max(rate, hidden / max(answer.first_s, LEAST_S))
                _note_hidden(view, number_of(team))
        had = bool(view[_COUNT] or view[_RATE])
        known = _rate(view[_RATE]) if had else USUAL_RATE_PER_S
        most = UNSEEN_STEP * max(known, LEAST_RATE_PER_S)  # one answer moves it by a step
        rate = min(rate, RATE_LIMIT_PER_S)
        if view[_COUNT] or rate <= most:  # until an answer fits, the target may be faster
            view[_COUNT] += 1.0
        view[_RATE] = max(min(rate, most), known * KEEP if had else 0.0)
        view[_SEEN] = now_s

    def hides(self, target: str, team: str = "") -> bool:
        """Return whether the target hid reasoning from this team, or from two teams."""
        view = self._rows.look(target_key(target))
        if view is None:
            return False
        if view[_HIDES] > BELIEVED:
            return True
        return view[_TEAM_HIDES] > BELIEVED and view[_TEAM] == number_of(team)

    def tokens_per_s(self, target: str) -> float | None:
        """Return the fastest recent rate; `None` until a step of the estimate reached an answer."""
        view = self._rows.look(target_key(target))
        return None if view is None or not view[_COUNT] else _rate(view[_RATE])

    def rows(self) -> Iterator[OutputRow]:
        """Yield the learned bounds of every target, in no order."""
        for slot, row in self._rows.rows():
            yield OutputRow(
                slot,
                _allowance(max(_PLAIN.most(row), _THINKS.most(row))),
                _rate(row[_RATE]) if row[_COUNT] else None,
                max(row[_HIDES], row[_TEAM_HIDES]) > BELIEVED,
                int(row[_COUNT]),
                row[_SEEN],
            )

    def _row(self, target: str, now_s: float) -> "memoryview[float]":
        """Return the target's row, aged; a new row is empty."""
        view = self._rows.claim(target_key(target), (0.0, 0.0, 0.0, 0.0, 0.0, now_s, now_s), now_s)
        if not 0.0 <= now_s - view[_AGED] < AGING_S:
            row: list[float] = view.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
            _age(row, now_s)
            for cell in range(_OVERRUN, OUTPUT_CELLS):
                view[cell] = row[cell]
        return view


@lru_cache(maxsize=SLOTS)
def target_key(target: str) -> RowKey:
    """Return the key of a target's rows; the provider is its owner."""
    return target, target.partition("/")[0]


def _note_hidden(view: "memoryview[float]", team: float) -> None:
    """Record that a team saw the target hide output.

    It applies to that team at once, and to all others when a second team saw it: the client and the
    provider of one team cannot raise the holds of others.
    """
    if view[_HIDES] > BELIEVED or (view[_TEAM_HIDES] > BELIEVED and view[_TEAM] != team):
        view[_HIDES] = 1.0
    view[_TEAM], view[_TEAM_HIDES] = team, 1.0


def _allowance(seen: float) -> int:
    return min(ceil(MARGIN * seen), OVERRUN_LIMIT)


def _rate(cell: float) -> float:
    return min(cell, RATE_LIMIT_PER_S) if cell > 0.0 else 0.0


def _age(row: list[float], now_s: float) -> None:
    """Fade a row towards the prior. A lower rate is no bound, so a rate is dropped as a whole."""
    age_s = now_s - row[_AGED]
    for peak in (_PLAIN, _THINKS):
        peak.fade(row, share_left(age_s, OVERRUN_HALF_LIFE_S))
    row[_TWICE] *= share_left(age_s, UNSEEN_HALF_LIFE_S)
    row[_HIDES] *= share_left(age_s, UNSEEN_HALF_LIFE_S)
    row[_TEAM_HIDES] *= share_left(age_s, UNSEEN_HALF_LIFE_S)
    if now_s - row[_SEEN] >= UNSEEN_HALF_LIFE_S:
        row[_RATE] = row[_COUNT] = 0.0
    row[_AGED] = now_s
