"""Tokens of a text before it is tokenised: learned by model and team, within physical limits.

The model is affine: a template that stands around every prompt, and bytes times a ratio. A prompt's
bound never depends on the ratio: a token is at least one byte of what was sent, so the bound is
the bytes and the template. The template is 64 tokens until answers show more, never above 2,048,
and any answer with fewer tokens than that refutes it. `router.estimator_rules` has the figures.

State is one row of float64 cells for each key, in memory that the caller may share between
processes (`gateway.fleet.estimate_table`). Any process writes any row: two that write at once lose
one observation of the two, which an estimate tolerates.
"""

from array import array
from collections.abc import Callable, Iterator
from enum import IntEnum
from hashlib import blake2b
from math import ceil
from typing import Final, NamedTuple

from router.estimator_rules import DAY_S, RATIO_HALF_LIFE_S, RATIO_STEP, Objection

Key = tuple[str, str]  # model and team

PRIOR_BYTES_PER_TOKEN = 4.0  # English prose in byte-pair vocabularies, until the model's is seen
LONGEST_TOKEN_BYTES = 128.0  # a row of blanks, in OpenAI's vocabularies
MOST_TOKENS_PER_BYTE = 4.0  # a normaliser may spell one character out in several
TEMPLATE_TOKENS = 64  # marks of turns and a short system prompt
TEMPLATE_LIMIT = 2048  # the longest that a target may put around a prompt
PRIOR_BYTES = 4096.0  # what the prior weighs, beside the bytes that were seen
EVIDENCE_BYTES = 16_384  # of one observation: a long one weighs no more than that
FADE = 256.0  # observations after which one weighs a third
REFUTED = 64.0  # observations that refute a template, until a third of it is left
UNCONFIRMED = 256.0  # observations that do not show it, until a third of it is left
AGING_S = 3600.0  # ages are applied in steps of at least this
UNUSED_S = 30 * DAY_S  # a key that nobody asked for is dropped
SLOTS = 4096
WINDOW = 8  # places that a key may have
LOOKS = 16  # estimates of an unknown key from one look for it to the next


class RatioCell(IntEnum):
    """Cells of one key; `TEAM` 0 is a free place."""

    TEAM = 0  # numbers made of the names
    MODEL = 1
    SIZE_BYTES = 2
    TOKENS = 3
    TEMPLATE = 4
    COUNT = 5
    SEEN_S = 6  # wall clock, as is the next: a file outlives its host's start
    AGED_S = 7


ROW_CELLS: Final = len(RatioCell)
# Plain numbers: members of an enumeration cost time as indices.
_TEAM, _MODEL, _SIZE, _TOKENS, _TEMPLATE, _COUNT, _SEEN, _AGED = range(ROW_CELLS)
_LEAST, _KEPT = 1.0 / LONGEST_TOKEN_BYTES, 1.0 - 1.0 / FADE


class RatioRow(NamedTuple):
    """One key with all that is known of it."""

    slot: int
    bytes_per_token: float
    template_tokens: int
    observations: int
    seen_s: float


class TokenRatio:
    """Estimates and bounds of prompts. `now_s` is wall clock."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, Key], None] | None = None,
    ) -> None:
        """`cells`: rows of `ROW_CELLS`, zero where free; `placed` is told of a key's new place."""
        if cells is None:
            cells = memoryview(array("d", bytes(8 * ROW_CELLS * SLOTS)))
        self._cells = cells
        self._slots = len(self._cells) // ROW_CELLS
        self._placed = placed
        self._places: dict[Key, _Place] = {}

    def close(self) -> None:
        """Let go of the memory."""
        self._places.clear()
        self._cells.release()

    def estimate(self, key: Key, size_bytes: int) -> tuple[int, int]:
        """(estimate, bound) in tokens of a prompt; the estimate never exceeds the bound."""
        row = self._look(key)
        if row is None:
            bound = size_bytes + TEMPLATE_TOKENS
            return min(max(1, ceil(size_bytes / PRIOR_BYTES_PER_TOKEN)), bound), bound
        template = ceil(_template(row))
        tokens = ceil(size_bytes * _ratio(row)) + template - TEMPLATE_TOKENS
        bound = size_bytes + template
        return min(max(1, tokens), bound), bound

    def text_tokens(self, key: Key, size_bytes: int) -> int:
        """The estimate of a text with nothing around it."""
        row = self._look(key)
        return ceil(size_bytes * (1.0 / PRIOR_BYTES_PER_TOKEN if row is None else _ratio(row)))

    def observe(self, key: Key, size_bytes: int, tokens: int, now_s: float) -> Objection | None:
        """Learn from one prompt of text alone; returns why it teaches nothing, if so."""
        objection = impossible(size_bytes, tokens)
        if objection is not None:
            return objection
        row = self._look(key)
        if row is None:
            row = self._claim(key, now_s)
        view = self._places[key].view
        assert view is not None  # it has a row
        if not 0.0 <= now_s - row[_AGED] < AGING_S:
            _age(row, now_s)
            view[_AGED], view[_TEMPLATE] = now_s, row[_TEMPLATE]
        template = _template(row)
        if template > TEMPLATE_TOKENS or tokens > size_bytes + TEMPLATE_TOKENS:
            view[_TEMPLATE] = _template_after(template, size_bytes, tokens)
        size_sum, token_sum = _weighed(row, size_bytes, tokens - template + TEMPLATE_TOKENS)
        view[_SIZE], view[_TOKENS], view[_COUNT] = size_sum, token_sum, row[_COUNT] + 1.0
        view[_SEEN] = now_s
        return None

    def age(self, now_s: float) -> None:
        """Let every key forget what is old, and drop those that nobody asked for."""
        for slot, row in self._rows():
            view = self._view(slot)
            if now_s - row[_SEEN] >= UNUSED_S:
                _clear(view)
            elif not 0.0 <= now_s - row[_AGED] < AGING_S:
                _age(row, now_s)
                view[_SIZE], view[_TOKENS], view[_TEMPLATE] = row[_SIZE : _TEMPLATE + 1]
                view[_AGED] = row[_AGED]

    def forget(self, model: str | None, team: str | None) -> int:
        """Drop the keys of a model, of a team, or of both (None: of all); returns how many."""
        of_model, of_team = (None if name is None else _number(name) for name in (model, team))
        found = [
            slot
            for slot, row in self._rows()
            if of_model in (None, row[_MODEL]) and of_team in (None, row[_TEAM])
        ]
        for slot in found:
            _clear(self._view(slot))
        return len(found)

    def rows(self) -> Iterator[RatioRow]:
        """Return what is known of every key, in no order."""
        for slot, row in self._rows():
            yield RatioRow(
                slot, 1.0 / _ratio(row), ceil(_template(row)), int(row[_COUNT]), row[_SEEN]
            )

    # -- places -------------------------------------------------------------------------------

    def _look(self, key: Key) -> list[float] | None:
        """The cells of the key's row; None where it has none."""
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= self._slots:
                self._places.clear()
            place = self._places[key] = _Place(_number(key[1]), _number(key[0]))
        if place.view is not None:
            row: list[float] = place.view.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
            if row[0] == place.team and row[1] == place.model:
                return row
            place.view, place.waits = None, 0  # another process gave it to another key
        elif place.waits:  # looking for it takes ten times as long as an estimate
            place.waits -= 1
            return None
        return self._find(place)

    def _find(self, place: "_Place") -> list[float] | None:
        """The row that has these names, whoever placed it; the next look for it comes later."""
        for slot in self._window(place):
            view = self._view(slot)
            if view[_TEAM] == place.team and view[_MODEL] == place.model:
                place.view = view
                return view.tolist()  # type: ignore[return-value]  # as above
        place.waits = LOOKS
        return None

    def _window(self, place: "_Place") -> list[int]:
        home = (int(place.team) ^ int(place.model)) >> 1
        return [(home + step) % self._slots for step in range(WINDOW)]

    def _claim(self, key: Key, now_s: float) -> list[float]:
        """Take a free place, else the team's own oldest, else the oldest.

        A team that makes up models so displaces its own keys before those of others.
        """
        place = self._places[key]
        if (row := self._find(place)) is not None:  # another process placed it since
            return row
        every = {slot: self._view(slot) for slot in self._window(place)}
        free = [slot for slot, view in every.items() if not view[_TEAM]]
        own = [slot for slot, view in every.items() if view[_TEAM] == place.team]
        slot = free[0] if free else min(own or every, key=lambda slot: every[slot][_SEEN])
        view = place.view = every[slot]
        _clear(view)
        prior = PRIOR_BYTES, PRIOR_BYTES / PRIOR_BYTES_PER_TOKEN, TEMPLATE_TOKENS, 0.0, now_s, now_s
        for cell, value in enumerate(prior, _SIZE):
            view[cell] = float(value)
        if self._placed is not None:
            self._placed(slot, key)
        view[_MODEL] = place.model
        view[_TEAM] = place.team  # last: only now it counts
        return view.tolist()  # type: ignore[return-value]  # as above

    def _view(self, slot: int) -> "memoryview[float]":
        return self._cells[slot * ROW_CELLS : (slot + 1) * ROW_CELLS]

    def _rows(self) -> Iterator[tuple[int, list[float]]]:
        """Every row that is taken, with its slot."""
        every: list[float] = self._cells.tolist()  # type: ignore[assignment]  # as above
        for slot in range(self._slots):
            if every[slot * ROW_CELLS]:
                yield slot, every[slot * ROW_CELLS : (slot + 1) * ROW_CELLS]


class _Place:
    """Where a key's row is, as this process knows it; `waits`: estimates until it looks again."""

    __slots__ = ("model", "team", "view", "waits")

    def __init__(self, team: float, model: float) -> None:
        self.team, self.model, self.waits = team, model, 0
        self.view: memoryview[float] | None = None


def impossible(size_bytes: int, tokens: int) -> Objection | None:
    """Why a text of this size cannot have so many tokens."""
    if tokens > size_bytes + TEMPLATE_LIMIT:
        return Objection.TOO_MANY
    if tokens * LONGEST_TOKEN_BYTES < size_bytes or tokens <= 0 or size_bytes <= 0:
        return Objection.TOO_FEW
    return None


def _number(name: str) -> float:
    """A number of 48 bits, which a cell holds exactly, and never 0."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return float(int.from_bytes(digest, "big") | 1)


def _ratio(row: list[float]) -> float:
    """Tokens per byte, within the limits whatever the cells hold."""
    ratio = row[_TOKENS] / row[_SIZE] if row[_SIZE] > 0.0 else 0.0
    if _LEAST <= ratio <= MOST_TOKENS_PER_BYTE:
        return ratio
    return MOST_TOKENS_PER_BYTE if ratio > MOST_TOKENS_PER_BYTE else _LEAST


def _template(row: list[float]) -> float:
    template = row[_TEMPLATE]
    return template if TEMPLATE_TOKENS <= template <= TEMPLATE_LIMIT else float(TEMPLATE_TOKENS)


def _template_after(template: float, size_bytes: int, tokens: int) -> float:
    """The template by one more observation: at once as long as was seen, at most twice as long.

    Any prompt with fewer tokens than the template refutes it; one that does not show it says less.
    """
    if tokens > size_bytes + template:
        return float(min(tokens - size_bytes, 2.0 * template, TEMPLATE_LIMIT))
    if tokens >= template and tokens > size_bytes + TEMPLATE_TOKENS:
        return template
    beyond = template - TEMPLATE_TOKENS
    beyond -= beyond / (REFUTED if tokens < template else UNCONFIRMED)
    return TEMPLATE_TOKENS + (beyond if beyond >= 1.0 else 0.0)


def _weighed(row: list[float], size: float, told: float) -> tuple[float, float]:
    """Sums with one more observation, as much of it as moves the ratio by at most `RATIO_STEP`."""
    size_sum, token_sum = _KEPT * row[_SIZE], _KEPT * row[_TOKENS]
    if not (size_sum > 0.0 and token_sum > 0.0):  # cells that a crash or a bad disk left
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
    """Give back to the prior what age takes from the observations."""
    kept = 0.5 ** (max(0.0, now_s - row[_AGED]) / RATIO_HALF_LIFE_S)
    size, tokens = PRIOR_BYTES, PRIOR_BYTES / PRIOR_BYTES_PER_TOKEN
    row[_SIZE] = size + kept * (row[_SIZE] - size)
    row[_TOKENS] = tokens + kept * (row[_TOKENS] - tokens)
    row[_TEMPLATE] = TEMPLATE_TOKENS + kept * (_template(row) - TEMPLATE_TOKENS)
    row[_AGED] = now_s


def _clear(view: "memoryview[float]") -> None:
    for cell in range(ROW_CELLS):
        view[cell] = 0.0
