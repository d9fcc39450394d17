"""Tokens by kind out of what a provider reports, or a typed refusal to believe it.

Providers disagree whether cached reads and cache writes are counted inside the prompt's total
(OpenAI, vLLM, LiteLLM's translations) or beside it (Anthropic). The `Convention` is therefore a
required argument; figures that tell another one are read by that (`cache_conventions`). Usage that
cannot be meant is refused, so that the attempt is settled on an estimate, visibly, instead of on
nonsense; of figures that contradict each other the refusal has the most (`usage_figures`). Kinds of
request that count units read the same table (`unit_usage`).
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
    """Read chat, completions, embeddings, responses and Anthropic messages usage.

    Usage that cannot be of `CACHED_INSIDE`, or tells that it is not, is read as `CACHED_OUTSIDE`.
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
    """Return counts as tokens by kind. Raises `UsageContradiction` where `odd` gets any."""
    counts = _with_sound(usage, counts)
    if convention is Convention.CACHED_INSIDE:
        convention = find_convention(counts, usage, _cached(counts, odd.append)).convention
    tokens = _tokens(usage, counts, convention, odd.append)
    if odd:
        raise UsageContradiction(odd[0], tokens)
    return tokens


def other_reading(usage: Mapping[str, object]) -> TokenCounts | None:
    """Return what usage says by the other convention, None where its figures tell which it is."""
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
    """All that stands for cached tokens: read and written."""
    return counts.get(UsageCount.CACHED, 0) + sum(_writes(counts, note))


def _with_sound(
    usage: Mapping[str, object], counts: Mapping[UsageCount, int]
) -> Mapping[UsageCount, int]:
    """Return counts with the sound that Mistral counts in its total alone, beside the prompt.

    It tells how many seconds it heard; thoughts that are told are what the total has more.
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
    # Cached audio is counted in both details; what is left of the prompt bounds the audio.
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
    """Whether the usage has counts above zero that nobody here knows."""
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
    """Return the numbers of `usage` by what they mean. Raises `UsageError` for what is no count."""
    if "cached_tokens" in usage and isinstance(usage.get("billed_units"), Mapping):
        # Cohere: of all that was read, its template too, and no part of what it bills.
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
    if not counts.get(UsageCount.TOTAL, 1):  # nobody added up
        del counts[UsageCount.TOTAL]
    if UsageCount.PROMPT_ANYWHERE in counts:
        _place_beside(counts)
    return counts


def _place_beside(counts: dict[UsageCount, int]) -> None:
    """Put what may stand beside the prompt there, where the total does not have it inside."""
    anywhere = counts.pop(UsageCount.PROMPT_ANYWHERE)
    told = counts.get(UsageCount.PROMPT, 0) + counts.get(UsageCount.COMPLETION, 0)
    if told != counts.get(UsageCount.TOTAL) or anywhere > counts.get(UsageCount.PROMPT, 0):
        counts[UsageCount.PROMPT_BESIDE] = counts.get(UsageCount.PROMPT_BESIDE, 0) + anywhere


def _walked(usage: Mapping[str, object]) -> list[tuple[UsageCount, str, Any]]:
    """Every member that the table names, in the table's order, however deep it stands."""
    for path in OUTER_OBJECTS:
        details_of(usage, path)
    found = [(ORDER[path], path, value) for path, value in leaves(usage) if path in ORDER]
    found.sort(key=itemgetter(0))
    read = [(MEMBERS[path], path.rpartition(".")[2], value) for _, path, value in found]
    return [*read, *_by_word(usage)]


def _by_word(usage: Mapping[str, object]) -> Iterator[tuple[UsageCount, str, Any]]:
    """Sums of the lists that count by a word, such as a modality."""
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
    """Numbers that add up, as most answers have them; anything else is looked at closely."""
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
    """Return the milliseconds of sound that usage tells, the most of them; None without any."""
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
    """Cache writes kept five minutes, and those kept an hour.

    A split by age may be of the first of several rounds, as Anthropic's with server tools. What it
    leaves out has the age that it names; of two ages the longer, which costs more.
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
    """Return the number that several names tell, of different ones the most, which `note` is told.

    A zero beside a count is a name that is not in use. Numbers that differ by what only one of
    them has inside are both right, and the first is that of the usage's own convention.
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
            raise UsageError(f"`{name}` is no object")
        return value
    return _NONE


def first_count(fields: Mapping[str, object], *names: str) -> int | None:
    """The first of the names that is there; null counts as absent, `5.0` as 5 as in JSON Schema."""
    for name in names:
        value = fields.get(name)
        if value is not None:
            return _whole(name, value)
    return None


def _whole_units(meaning: UsageCount, name: str, value: object, note: _Note) -> int:
    """Return a count; of searches a part of a unit is a whole one, which `note` is told."""
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
