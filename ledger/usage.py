"""Token counts by kind from a provider's usage object, or a typed error if implausible.

Providers differ in whether cache reads and writes are counted inside the prompt's total (OpenAI,
vLLM, LiteLLM's translations) or outside it (Anthropic), so `Convention` is a required argument.
Counts that prove the other convention are read by that one (`cache_conventions`). Usage that cannot
be right is refused, and the attempt is settled on a visible estimate. For contradicting counts the
error carries the highest ones (`usage_figures`). `unit_usage` reads request kinds with other units
by the same table.
"""

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from operator import itemgetter
from typing import Any

from ledger.cache_conventions import Convention, find_convention, summed_prompt
from ledger.journals.token_kinds import (
    AUDIO_MS_LIMIT,
    MS_PER_S,
    SEARCHES_LIMIT,
    TOKENS_LIMIT,
    TokenCounts,
)
from ledger.prices.rates import prompt_tokens
from ledger.usage_figures import (
    BESIDE,
    NoCountsError,
    UsageContradiction,
    UsageError,
    figures_of,
    read_figures,
)
from ledger.usage_members import (
    BY_WORD,
    DIFFERENCES,
    MEMBERS,
    SOUND_SECONDS,
    UsageCount,
    is_counted,
    leaves,
    unread,
)
from ledger.usage_output import read_output
from ledger.usage_rounds import with_rounds
from ledger.usage_shapes import (
    ORDER,
    OUTER_OBJECTS,
    counts_by_shape,
    unknown_places,
    usage_shape,
)

_WORDS = {UsageCount.CACHED: "cached reads", UsageCount.WRITTEN: "cache writes"}  # in messages
_PLAIN = frozenset(("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"))
_PLAIN_DETAILS = frozenset(("cached_tokens",))
_HEARD_SECONDS = SOUND_SECONDS[1]
_THOUGHTS = frozenset((UsageCount.THOUGHT, UsageCount.THOUGHT_ANYWHERE, UsageCount.THOUGHT_BESIDE))
_NONE: Mapping[str, object] = {}


_Note = Callable[[str], None]  # is told of figures that contradict each other


def tokens_from_usage(usage: Mapping[str, object], convention: Convention) -> TokenCounts:
    """Return the tokens of chat, completion, embedding, response or Anthropic message usage.

    Usage that cannot follow `CACHED_INSIDE`, or proves that it does not, is read as
    `CACHED_OUTSIDE`.
    """
    if _PLAIN.issuperset(usage) and convention is Convention.CACHED_INSIDE:
        plain = _plain(usage)
        if plain is not None:
            return plain
    if BESIDE in usage:
        return read_figures(usage, lambda figure: tokens_from_usage(figure, convention))
    usage = with_rounds(usage)
    odd: list[str] = []
    counts = counts_of(usage, odd.append)
    if UsageCount.PROMPT not in counts:
        raise NoCountsError("neither `prompt_tokens` nor `input_tokens` is there")
    return tokens_of_counts(usage, counts, convention, odd)


def tokens_of_counts(
    usage: Mapping[str, object],
    counts: Mapping[UsageCount, int],
    convention: Convention,
    odd: list[str],
) -> TokenCounts:
    """Return counts as tokens by kind. Raises `UsageContradiction` if `odd` gets any entry."""
    counts = _with_sound(usage, counts)
    if convention is Convention.CACHED_INSIDE:
        convention = find_convention(counts, usage, _cached(counts, odd.append)).convention
    tokens = _tokens(usage, counts, convention, odd.append)
    if odd:
        raise UsageContradiction(odd[0], tokens)
    return tokens


def other_reading(usage: Mapping[str, object]) -> TokenCounts | None:
    """Return the tokens by the other convention, or `None` if the counts prove one."""
    if BESIDE in usage:
        return None
    usage = with_rounds(usage)
    odd: list[str] = []
    try:
        counts = counts_of(usage, odd.append)
        known = find_convention(counts, usage, _cached(counts, odd.append))
        other = next(way for way in Convention if way != known.convention)
        if known.is_told or UsageCount.PROMPT not in counts:
            return None
        tokens = _tokens(usage, counts, other, odd.append)
    except UsageError:
        return None
    return None if odd else tokens


def _cached(counts: Mapping[UsageCount, int], note: _Note) -> int:
    """Return the tokens that were read from or written to a cache."""
    return counts.get(UsageCount.CACHED, 0) + sum(_writes(counts, note))


def _with_sound(
    usage: Mapping[str, object], counts: Mapping[UsageCount, int]
) -> Mapping[UsageCount, int]:
    """Return counts including the audio that Mistral counts only in its total.

    This applies if usage has the seconds of audio and no reasoning, which would explain the
    difference to the total otherwise.
    """
    if not usage.get(_HEARD_SECONDS) or not _THOUGHTS.isdisjoint(counts):
        return counts
    parts = (UsageCount.PROMPT, UsageCount.PROMPT_BESIDE, UsageCount.COMPLETION)
    heard = counts.get(UsageCount.TOTAL, 0) - sum(counts.get(part, 0) for part in parts)
    if heard <= 0 or not all(part in counts for part in parts[::2]):
        return counts
    beside = counts.get(UsageCount.PROMPT_BESIDE, 0) + heard
    sound = max(heard, counts.get(UsageCount.AUDIO_IN, 0))
    return {**counts, UsageCount.PROMPT_BESIDE: beside, UsageCount.AUDIO_IN: sound}


def _tokens(
    usage: Mapping[str, object],
    counts: Mapping[UsageCount, int],
    convention: Convention,
    note: _Note,
) -> TokenCounts:
    prompt = counts.get(UsageCount.PROMPT, 0) + counts.get(UsageCount.PROMPT_BESIDE, 0)
    cached = counts.get(UsageCount.CACHED, 0)
    write, write_1h = _writes(counts, note)
    if convention is Convention.CACHED_INSIDE:
        if write_1h == 0 and UsageCount.CREATED in counts:
            write = min(write or counts[UsageCount.CREATED], max(0, prompt - cached))
        fresh = prompt - cached - write - write_1h
        if fresh < 0:
            note(f"{cached} cached + {write + write_1h} written of {prompt} in the prompt")
            fresh, prompt = prompt, prompt + cached + write + write_1h
    else:
        fresh = prompt
        prompt = summed_prompt(counts, prompt, (cached, write + write_1h))
        write = write or counts.get(UsageCount.CREATED, 0)
    # Cached audio is counted in both details; the rest of the prompt bounds uncached audio.
    audio = min(counts.get(UsageCount.AUDIO_IN, 0), fresh)
    output, reasoning, audio_output, image_output = read_output(counts, prompt, note)
    return check_limit(
        TokenCounts(
            input=fresh - audio + counts.get(UsageCount.CITED, 0),
            cached=cached,
            cache_write=write,
            cache_write_1h=write_1h,
            output=output,
            reasoning=reasoning,
            audio_input=audio,
            audio_output=audio_output,
            searches=_searches(counts.get(UsageCount.SEARCHES, 0)),
            image_output=image_output,
            audio_ms=sound_ms_of(usage) or 0,
        )
    )


def has_unread(usage: Mapping[str, object]) -> bool:
    """Return whether the usage has counts above zero that the table does not know."""
    if _PLAIN.issuperset(usage) and usage.get("prompt_tokens_details") is None:
        return False
    if BESIDE in usage:
        return any(map(has_unread, figures_of(usage)))
    usage = with_rounds(usage)
    shape = usage_shape(usage)
    if shape is None:
        return bool(unread(usage))
    for outer, name in unknown_places(shape):
        fields: Any = usage if outer is None else usage[outer]
        if is_counted(fields[name]):
            return True
    return False


def counts_of(usage: Mapping[str, object], note: _Note) -> dict[UsageCount, int]:
    """Return the numbers of `usage` by meaning. Raises `UsageError` for an invalid count."""
    if "cached_tokens" in usage and isinstance(usage.get("billed_units"), Mapping):
        # Cohere: cached tokens of the input with its template, which are not billed apart.
        usage = {name: value for name, value in usage.items() if name != "cached_tokens"}
    shape = usage_shape(usage)
    said: dict[UsageCount, list[int]] = {}
    for meaning, name, value in _walked(usage) if shape is None else counts_by_shape(usage, shape):
        if value is None:
            continue
        usual = type(value) is int and 0 <= value <= TOKENS_LIMIT
        said.setdefault(meaning, []).append(
            value if usual else _whole_units(meaning, name, value, note)
        )
    counts = {
        meaning: numbers[0] if len(numbers) == 1 else _agree_on_count(meaning, said, note)
        for meaning, numbers in said.items()
    }
    if not counts.get(UsageCount.TOTAL, 1):  # no total to add up
        del counts[UsageCount.TOTAL]
    if UsageCount.PROMPT_ANYWHERE in counts:
        _place_beside(counts)
    return counts


def _place_beside(counts: dict[UsageCount, int]) -> None:
    """Count `PROMPT_ANYWHERE` outside the prompt, unless the total shows it inside."""
    anywhere = counts.pop(UsageCount.PROMPT_ANYWHERE)
    told = counts.get(UsageCount.PROMPT, 0) + counts.get(UsageCount.COMPLETION, 0)
    if told != counts.get(UsageCount.TOTAL) or anywhere > counts.get(UsageCount.PROMPT, 0):
        counts[UsageCount.PROMPT_BESIDE] = counts.get(UsageCount.PROMPT_BESIDE, 0) + anywhere


def _walked(usage: Mapping[str, object]) -> list[tuple[UsageCount, str, Any]]:
    """Return every member that the table names, at any depth, in the table's order."""
    for path in OUTER_OBJECTS:
        details_of(usage, path)
    found = [(ORDER[path], path, value) for path, value in leaves(usage) if path in ORDER]
    found.sort(key=itemgetter(0))
    read = [(MEMBERS[path], path.rpartition(".")[2], value) for _, path, value in found]
    return [*read, *_by_word(usage)]


def _by_word(usage: Mapping[str, object]) -> Iterator[tuple[UsageCount, str, Any]]:
    """Yield sums of the lists that group counts by a text member, such as a modality."""
    for (name, member, word, count_name), meaning in BY_WORD.items():
        stated = usage.get(name)
        entries = [
            entry.get(count_name)
            for entry in (stated if isinstance(stated, list) else ())
            if isinstance(entry, Mapping) and entry.get(member) == word
        ]
        if counts := [_whole(name, count) for count in entries if count is not None]:
            yield meaning, name, sum(counts)


def _plain(usage: Mapping[str, object]) -> TokenCounts | None:
    """Return the tokens of usage whose few numbers add up, else `None` for the full reading."""
    prompt, output = (
        first_count(usage, "prompt_tokens"),
        first_count(usage, "completion_tokens") or 0,
    )
    if prompt is None or first_count(usage, "total_tokens") not in (None, prompt + output):
        return None
    details = details_of(usage, "prompt_tokens_details")
    if not _PLAIN_DETAILS.issuperset(details):
        return None
    cached = first_count(details, "cached_tokens") or 0
    return (
        TokenCounts(input=prompt - cached, cached=cached, output=output)
        if cached <= prompt
        else None
    )


def _searches(count: int) -> int:
    if count > SEARCHES_LIMIT:
        raise UsageError(f"more than {SEARCHES_LIMIT} searches in one request")
    return count


def sound_ms_of(usage: Mapping[str, object]) -> int | None:
    """Return the longest audio duration in usage, in milliseconds, or `None` without any."""
    told = [_sound_ms(name, usage[name]) for name in SOUND_SECONDS if name in usage]
    return max((sound_ms for sound_ms in told if sound_ms is not None), default=None)


def _sound_ms(name: str, value: object) -> int | None:
    if value is None or value == {}:  # as Mistral writes none
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"`{name}` is {value!r}: not a number")
    if not 0 <= value <= AUDIO_MS_LIMIT / MS_PER_S:
        raise UsageError(f"`{name}` is {value}: not between 0 and {AUDIO_MS_LIMIT // 1000}")
    return round(value * MS_PER_S)


def _writes(counts: Mapping[UsageCount, int], note: _Note) -> tuple[int, int]:
    """Return the cache writes kept for five minutes, and those kept for an hour.

    A split by age may cover only the first of several rounds, as in Anthropic's usage with server
    tools. The remainder gets the age that is named; of two ages the longer, which costs more.
    """
    total = counts.get(UsageCount.WRITTEN, 0)
    short, long = counts.get(UsageCount.WRITTEN_5M, 0), counts.get(UsageCount.WRITTEN_1H, 0)
    rest = total - short - long
    if not (short or long) or rest == 0 or total == 0:
        return short or (0 if long else total), long
    if rest < 0:
        note(f"cache writes: {total} in all, {short + long} by age")
        return short, long
    return (short, long + rest) if long else (short + rest, long)


def _agree_on_count(meaning: UsageCount, said: Mapping[UsageCount, list[int]], note: _Note) -> int:
    """Return the number given by several names; the highest, with a `note`, if they differ.

    A zero next to a count is an unused name. Numbers that differ by a part that only one of them
    includes are both right; the first, of the usage's own convention, counts.
    """
    numbers = [number for number in said[meaning] if number]
    least, most = min(numbers, default=0), max(numbers, default=0)
    if least == most:
        return most
    parts = [max(said[part]) for part in DIFFERENCES.get(meaning, ()) if part in said]
    if most - least in (*parts, sum(parts)):
        return numbers[0]
    what = _WORDS.get(meaning) or meaning.name.lower()
    note(f"{what}: reported as {' and '.join(map(str, sorted(set(numbers))))}")
    return most


def details_of(usage: Mapping[str, object], *names: str) -> Mapping[str, object]:
    for name in names:
        value = usage.get(name)
        if value is None or value == []:  # as PHP writes an object without members
            continue
        if not isinstance(value, Mapping):
            raise UsageError(f"`{name}` is not an object")
        return value
    return _NONE


def first_count(fields: Mapping[str, object], *names: str) -> int | None:
    """Return the first of the names with a value, or `None` if there is none.

    Null is absent; `5.0` is 5, as in JSON Schema.
    """
    for name in names:
        value = fields.get(name)
        if value is not None:
            return _whole(name, value)
    return None


def _whole_units(meaning: UsageCount, name: str, value: object, note: _Note) -> int:
    """Return a count; a fraction of a search is rounded up, with a `note`."""
    if meaning is UsageCount.SEARCHES and type(value) is float and 0 <= value <= TOKENS_LIMIT:
        if not value.is_integer():
            note(f"`{name}` is {value!r}: not a whole number")
        return ceil(value)
    return _whole(name, value)


def _whole(name: str, value: object) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int:  # bool is an int to isinstance, and no count
        raise UsageError(f"`{name}` is {value!r}: not a whole number")
    if not 0 <= value <= TOKENS_LIMIT:
        raise UsageError(f"`{name}` is {value}: not between 0 and {TOKENS_LIMIT}")
    return value


def check_limit(tokens: TokenCounts) -> TokenCounts:
    if prompt_tokens(tokens) > TOKENS_LIMIT or tokens.output > TOKENS_LIMIT:
        raise UsageError(f"more than {TOKENS_LIMIT} tokens in one request")
    return tokens
