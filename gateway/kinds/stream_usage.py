"""Usage of a stream, from several figures in several places."""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

import msgspec

from backends.chunk_choices import ChunkChoice
from backends.json_mending import mend_json
from backends.sse import data_spans, join_data
from backends.usage_bytes import UNREADABLE_USAGE, decode_told, decode_usage, read_counts
from backends.usage_places import may_tell_more, sum_choices, usage_in

# Names of counts in an answer's usage, in all vendors' spellings.
_PROMPT: Final = re.compile(
    rb'"(?:prompt|input)_?tokens"|"(?:prompt|input)TokenCount"', re.IGNORECASE
)
_OUTPUT: Final = re.compile(rb'"(?:completion|output|candidates)_?token', re.IGNORECASE)
_IS_NEWER: Final = re.compile(
    r"total|completion|output|candidates|thought|reasoning", re.IGNORECASE
)
EARLIER_LIMIT = 3  # figures kept besides the last, for a stream whose figures grow
STANDS_FROM = 2  # figures that did not grow with the text before them
UNLIKE_LIMIT = 8  # of figures of which each has some larger count
_DEEPEST = 8
USAGE_LIMIT_BYTES = 64 * 1024


class UsageTooLong(ValueError):
    """Usage larger than `USAGE_LIMIT_BYTES`, which no counter can have written."""


class StreamUsage:
    """The last usage figure of a stream, and the figures that it replaced.

    `final`: no text came after it. `behind`: text came after it, or it is of some choices only.
    Figures are kept encoded until the stream ends, for each choice.
    """

    __slots__ = ("_choices", "_grown", "_inside", "_stood", "behind", "earlier", "final", "raw")

    def __init__(self, choices: int) -> None:
        """Create an empty usage; `choices` is the number of choices in the answer."""
        self.earlier: tuple[bytes, ...] = ()
        self.final = False
        self.behind = False
        self.raw: bytes | None = None
        self._choices = choices
        self._grown = self._stood = 0  # figures after text with more output, and without more
        self._inside: dict[int, bytes] = {}  # figures within choices

    @property
    def last(self) -> dict[str, Any] | None:
        """Return the last figure decoded, `None` without any."""
        return decode_usage(self.raw)

    @property
    def replaced(self) -> tuple[dict[str, Any], ...]:
        """Return the figures that `last` replaced and no other figure covers, oldest first."""
        decoded = (decode_usage(raw) for raw in self.earlier)
        return tuple(usage for usage in decoded if usage is not None)

    @property
    def stands(self) -> bool:
        """Return whether figures do not grow with the answer, as if each were of its chunk only."""
        return self._stood >= STANDS_FROM and 2 * self._stood >= self._grown

    def take(self, raw: bytes, *, final: bool) -> None:
        """Record a figure of the whole answer. Raises `UsageTooLong`.

        It stands in a chunk of its own or in that of a choice; with an unfinished choice it is a
        running figure. A figure of only the output is completed by the earlier prompt count, as in
        Anthropic's streams.
        """
        checked = check_usage(raw)
        if self.raw is not None and _PROMPT.search(checked) is None:
            checked = _with_prompt_of(self.raw, checked)
        if self.behind and self.raw is not None and self._choices == 1:
            if is_more_output(self.raw, checked):
                self._grown += 1
            else:
                self._stood += 1
        if self.raw not in (None, checked):
            self.earlier = _kept_of((*self.earlier, self.raw))
        self.raw, self.final, self.behind = checked, final, False

    def take_event(self, event: bytes, raw: bytes | None, *, final: bool) -> None:
        """Record the usage of an event: `raw`, and what the event has in other places.

        Raises `UsageTooLong`.
        """
        if raw is None or may_tell_more(event, raw):
            usage = usage_in(_decoded(event))
            raw = raw if usage is None else msgspec.json.encode(usage)
        if raw is not None:
            self.take(raw, final=final)

    def take_inside(self, event: bytes, choices: list[ChunkChoice], *, final: bool) -> bool:
        """Record usage within choices, which is relayed as it is; return whether there was any."""
        inside = [choice for choice in choices if choice.usage_bytes() is not None]
        if not inside:
            return False
        if may_tell_more(event, b"".join(bytes(choice.usage) for choice in inside)):
            value = _decoded(event)
            beside = usage_in({**value, "choices": _without_usage(value.get("choices"))})
            if beside is not None:
                self.take(msgspec.json.encode(beside), final=final)
        for choice in inside:
            self.take_choice(choice.index, bytes(choice.usage), final=final)
        return True

    def take_choice(self, index: int, raw: bytes, *, final: bool) -> None:
        """Record a figure within a choice. Raises `UsageTooLong`.

        If only one choice has a figure, it covers all choices; if several have, each covers its
        own.
        """
        if self._choices > 1 and 0 <= index < self._choices:
            self._inside[index] = check_usage(raw)
            told = [decode_usage(inside) or {} for inside in self._inside.values()]
            if len(told) > 1:
                self.take(msgspec.json.encode(sum_choices(told)), final=final)
                self.behind = len(told) < self._choices
                self.final = final and not self.behind
                return
        self.take(raw, final=final)

    def pass_words(self) -> None:
        """Record that content came, which earlier figures do not cover."""
        self.final, self.behind = False, self.behind or self.raw is not None

    def end(self, *, is_whole: bool = True) -> None:
        """Record the end of the answer, or of a part of it (not `is_whole`)."""
        is_lagging = self.behind and self.raw is not None
        self.behind = not is_whole or is_lagging
        self.final = not self.behind

    def forget(self) -> None:
        """Drop all figures: they belong to a prompt that was not processed."""
        self.raw, self.earlier = None, ()


def is_more_output(before: bytes, raw: bytes) -> bool:
    """Return whether a figure counts more output than the one before, or either is unreadable."""
    if before == raw:
        return False
    known, told = read_counts(before), read_counts(raw)
    return known is None or told is None or told[1] > known[1]


def _with_prompt_of(before: bytes, raw: bytes) -> bytes:
    """Return a figure of only output, completed by the earlier figure except for totals."""
    known, told = decode_usage(before) or {}, decode_usage(raw) or {}
    if _OUTPUT.search(raw) is None or _PROMPT.search(before) is None or told == UNREADABLE_USAGE:
        return raw
    kept = {name: count for name, count in known.items() if not _IS_NEWER.search(name)}
    return msgspec.json.encode({**kept, **told})


def _kept_of(figures: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return the figures; if there are too many, without one whose counts another covers."""
    if len(figures) <= EARLIER_LIMIT:
        return figures
    told = [decode_usage(raw) or {} for raw in figures]
    for at, usage in enumerate(told):
        # The next one first, as most streams count up.
        if any(_covers(other, usage) for other in (*told[at + 1 :], *told[:at])):
            return figures[:at] + figures[at + 1 :]
    if len(figures) <= UNLIKE_LIMIT:
        return figures
    least = min(range(len(told)), key=lambda at: _sum_of(told[at]))
    return figures[:least] + figures[least + 1 :]


def _covers(more: Any, less: Any, depth: int = 0) -> bool:
    """Return whether each count in `less` is at least as large in `more`."""
    if isinstance(less, dict) and depth < _DEEPEST:
        beside = more if isinstance(more, dict) else {}
        return all(_covers(beside.get(name), less[name], depth + 1) for name in less)
    if isinstance(less, list) and depth < _DEEPEST:
        listed = more if isinstance(more, list) else []
        pairs = zip_longest(listed[: len(less)], less)
        return all(_covers(other, value, depth + 1) for other, value in pairs)
    if type(less) not in (int, float) or not less:
        return True
    return type(more) in (int, float) and more >= less


def _sum_of(usage: dict[str, Any]) -> float:
    return float(sum(value for value in usage.values() if type(value) in (int, float)))


def check_usage(raw: bytes) -> bytes:
    """Return the usage unchanged. Raises `UsageTooLong`."""
    if len(raw) > USAGE_LIMIT_BYTES:
        raise UsageTooLong(f"its usage is larger than {USAGE_LIMIT_BYTES} bytes")
    return raw


def _decoded(event: bytes) -> dict[str, Any]:
    payload = join_data(event, data_spans(event) or [])
    return decode_told(payload) or decode_told(mend_json(payload) or b"") or {}


def _without_usage(choices: Any) -> list[dict[str, Any]]:
    return [
        {name: item for name, item in choice.items() if name != "usage"}
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict)
    ]


def trailing_usage(events: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the usage of events after an answer's end; nothing else of them counts."""
    for event in events:
        usage = usage_in(_decoded(event))
        raw = b"" if usage is None else msgspec.json.encode(usage)
        if 0 < len(raw) <= USAGE_LIMIT_BYTES:
            yield raw
