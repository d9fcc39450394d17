import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cache_conventions import Convention
from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import TOKENS_LIMIT
from ledger.prices.book import prompt_tokens
from ledger.unit_usage import (
    tokens_of_embedding,
    tokens_of_reranking,
    tokens_of_transcription,
)
from ledger.usage import counts_of, has_unread, tokens_from_usage
from ledger.usage_figures import UsageContradiction, UsageError
from ledger.usage_members import MEMBERS, UsageCount

INSIDE, OUTSIDE = Convention.CACHED_INSIDE, Convention.CACHED_OUTSIDE
OPENAI = {
    "prompt_tokens": 1000,
    "completion_tokens": 300,
    "total_tokens": 1300,
    "prompt_tokens_details": {"cached_tokens": 400, "audio_tokens": 50},
    "completion_tokens_details": {"reasoning_tokens": 120, "audio_tokens": 30},
}
ANTHROPIC = {
    "input_tokens": 100,
    "output_tokens": 20,
    "cache_creation_input_tokens": 70,
    "cache_read_input_tokens": 900,
    "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40},
}


@pytest.mark.parametrize(
    ("usage", "convention", "tokens"),
    [
        (
            OPENAI,
            INSIDE,
            TokenCounts(550, 400, output=300, reasoning=120, audio_input=50, audio_output=30),
        ),
        (ANTHROPIC, OUTSIDE, TokenCounts(100, 900, 30, 40, output=20)),
        (  # the same numbers under the other convention are another bill: hence no default
            {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 400}},
            OUTSIDE,
            TokenCounts(1000, 400),
        ),
        (  # vLLM, chat
            {
                "prompt_tokens": 155,
                "total_tokens": 180,
                "completion_tokens": 25,
                "prompt_tokens_details": {
                    "cached_tokens": 16,
                    "created_cache_tokens": 128,
                    "multimodal_tokens": None,
                },
                "completion_tokens_details": None,
            },
            INSIDE,
            TokenCounts(11, 16, 128, output=25),
        ),
        ({"prompt_tokens": 8, "total_tokens": 8}, INSIDE, TokenCounts(8)),  # embeddings
        (  # responses
            {
                "input_tokens": 8,
                "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 4},
                "total_tokens": 13,
            },
            INSIDE,
            TokenCounts(3, 2, 3, output=5, reasoning=4),
        ),
        (  # DeepSeek's name for cached reads
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
            INSIDE,
            TokenCounts(6, 4, output=1),
        ),
        (  # a translation that repeats one number under two names
            {
                "prompt_tokens": 10,
                "cache_read_input_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            INSIDE,
            TokenCounts(6, 4),
        ),
        (  # LiteLLM's details of writes by age
            {
                "prompt_tokens": 50,
                "cache_creation_input_tokens": 20,
                "prompt_tokens_details": {
                    "cache_creation_tokens": 20,
                    "cache_creation_token_details": {"ephemeral_1h_input_tokens": 20},
                },
            },
            INSIDE,
            TokenCounts(30, 0, 0, 20),
        ),
        (  # xAI: reasoning is beside completion_tokens, and only the total says so
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 35,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            INSIDE,
            TokenCounts(10, output=25, reasoning=20),
        ),
        (  # Gemini's OpenAI endpoint: thoughts appear in the total alone
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22},
            INSIDE,
            TokenCounts(10, output=12, reasoning=7),
        ),
        (  # cached audio is counted by both details
            {
                "prompt_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 9},
            },
            INSIDE,
            TokenCounts(0, 8, audio_input=2),
        ),
        (  # vLLM's created blocks may overlap what was found in the cache
            {
                "prompt_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 16, "created_cache_tokens": 16},
            },
            INSIDE,
            TokenCounts(0, 16, 4),
        ),
        (
            {
                "prompt_tokens": 16,
                "prompt_tokens_details": {"cached_tokens": 16, "created_cache_tokens": 16},
            },
            INSIDE,
            TokenCounts(0, 16),
        ),
    ],
)
def test_shapes(usage, convention, tokens):
    assert tokens_from_usage(usage, convention) == tokens


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_tokens": 1000.0, "completion_tokens": 300.0, "total_tokens": 1300.0},
        {"prompt_tokens_details": OPENAI["prompt_tokens_details"] | {"cached_tokens": 400.0}},
        {"prompt_tokens_details": OPENAI["prompt_tokens_details"], "cache_creation": []},
    ],
)
def test_whole_numbers_and_empty_objects_may_be_written_otherwise(change):
    """`5.0` is an integer to JSON Schema, and PHP writes an empty object as a list."""
    found = tokens_from_usage(OPENAI | change, INSIDE)
    assert found == tokens_from_usage(OPENAI, INSIDE)
    assert all(type(getattr(found, name)) is int for name in found.__struct_fields__)


def test_details_that_are_an_empty_list_say_nothing():
    bare = {"prompt_tokens": 9, "completion_tokens": 3}
    empty = {"prompt_tokens_details": [], "completion_tokens_details": []}
    assert tokens_from_usage(bare | empty, INSIDE) == tokens_from_usage(bare, INSIDE)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"prompt_tokens": -1}, "prompt_tokens"),
        ({"prompt_tokens": "1000"}, "not a whole number"),
        ({"prompt_tokens": 1000.5}, "not a whole number"),
        ({"prompt_tokens": 1e30}, "not between"),
        ({"prompt_tokens": float("inf")}, "not a whole number"),
        ({"prompt_tokens": True}, "not a whole number"),
        ({"prompt_tokens": TOKENS_LIMIT + 1}, "not between"),
        ({"prompt_tokens": None}, "neither"),
        ({"completion_tokens": -5}, "completion_tokens"),
        ({"total_tokens": 1299}, "less than"),
        ({"total_tokens": 1301}, "neither with nor without"),
        ({"prompt_tokens_details": {"cached_tokens": 1001}}, "cached"),
        ({"prompt_tokens_details": {"cached_tokens": 999, "cache_write_tokens": 2}}, "written"),
        ({"prompt_tokens_details": [400]}, "not an object"),
        ({"cache_read_input_tokens": 401}, "401"),
        ({"completion_tokens_details": {"reasoning_tokens": 290, "audio_tokens": 11}}, "audio"),
    ],
)
def test_implausible_usage_is_refused_and_names_the_field(change, named):
    with pytest.raises(UsageError, match=named):
        tokens_from_usage(OPENAI | change, INSIDE)


def test_writes_that_are_fewer_than_those_by_age_are_refused():
    with pytest.raises(UsageError, match="by age"):
        tokens_from_usage(ANTHROPIC | {"cache_creation_input_tokens": 69}, OUTSIDE)


@pytest.mark.parametrize(
    ("ages", "written"),
    [
        ({"ephemeral_5m_input_tokens": 30}, (100, 0)),
        ({"ephemeral_1h_input_tokens": 30}, (0, 100)),
        ({"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40}, (30, 70)),
        ({"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}, (100, 0)),
    ],
)
def test_a_split_by_age_of_the_first_round_alone(ages, written):
    """What it leaves out has the age that it names; of two ages the longer."""
    usage = ANTHROPIC | {"cache_creation_input_tokens": 100, "cache_creation": ages}
    tokens = tokens_from_usage(usage, OUTSIDE)
    assert (tokens.cache_write, tokens.cache_write_1h) == written


def test_absurd_sums_are_refused():
    half = TOKENS_LIMIT // 2 + 1
    usage = {"input_tokens": half, "cache_read_input_tokens": half}
    with pytest.raises(UsageError, match="in one request"):
        tokens_from_usage(usage, OUTSIDE)


COUNT = st.integers(0, 100_000)


@given(COUNT, COUNT, COUNT, COUNT, COUNT)
def test_inside_no_token_is_lost_or_counted_twice(fresh, cached, write, output, reasoning):
    usage = {
        "prompt_tokens": fresh + cached + write,
        "completion_tokens": output + reasoning,
        "total_tokens": fresh + cached + write + output + reasoning,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": write},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    tokens = tokens_from_usage(usage, INSIDE)
    assert tokens == TokenCounts(
        fresh, cached, write, output=output + reasoning, reasoning=reasoning
    )
    assert prompt_tokens(tokens) == usage["prompt_tokens"]


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=3),
    st.integers(),
    st.dictionaries(
        st.sampled_from(["cached_tokens", "audio_tokens", "reasoning_tokens"]), st.integers()
    ),
)


@given(
    st.dictionaries(st.sampled_from([*OPENAI, *ANTHROPIC]), JUNK),
    st.sampled_from(list(Convention)),
)
def test_whatever_arrives_is_refused_or_plausible(usage, convention):
    try:
        tokens = tokens_from_usage(usage, convention)
    except UsageError:
        return
    assert min(tokens.input, tokens.cached, tokens.output, tokens.audio_input) >= 0
    assert tokens.reasoning + tokens.audio_output <= tokens.output <= TOKENS_LIMIT
    assert prompt_tokens(tokens) <= TOKENS_LIMIT


@given(
    st.integers(0, 50) | st.none(),
    st.integers(0, 50) | st.none(),
    st.integers(0, 110) | st.none(),
    st.none()
    | st.dictionaries(st.sampled_from(["cached_tokens", "audio_tokens"]), st.integers(0, 60)),
)
def test_the_usual_shape_is_read_as_any_other(prompt, completion, total, details):
    """A member that nobody knows sends it the long way."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    usage["prompt_tokens_details"] = details

    def read(usage):
        try:
            return tokens_from_usage(usage, Convention.CACHED_INSIDE)
        except UsageError as error:
            return str(error)

    assert read(usage) == read({**usage, "of_another_vendor": 1})


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"total_tokens": 7}, TokenCounts(input=7)),  # Voyage
        ({"prompt_tokens": 5, "total_tokens": 7}, TokenCounts(input=7)),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
            TokenCounts(input=5, output=2),
        ),
        ({"prompt_tokens": None, "total_tokens": 7}, TokenCounts(input=7)),
    ],
)
def test_an_embeddings_total_is_its_prompt_where_no_other_count_is_told(usage, tokens):
    assert tokens_of_embedding(usage) == tokens


def test_counts_by_modality_add_up_and_one_without_a_number_says_nothing():
    usage = {
        "promptTokenCount": 100, "candidatesTokenCount": 30, "totalTokenCount": 130,
        "promptTokensDetails": [
            {"modality": "AUDIO", "tokenCount": 40}, {"modality": "AUDIO", "tokenCount": 2},
            {"modality": "AUDIO"}, {"modality": "TEXT", "tokenCount": 58},
        ],
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 20}, {"modality": "AUDIO"}],
    }  # fmt: skip
    found = tokens_from_usage(usage, INSIDE)
    assert found == TokenCounts(input=58, audio_input=42, output=30, image_output=20)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 9, "total_tokens": 9}, TokenCounts(input=9)),
        ({"total_tokens": 7}, TokenCounts(input=7)),  # Voyage
        ({"search_units": 2}, TokenCounts(searches=2)),  # Cohere
        ({"search_units": 0, "input_tokens": 3}, TokenCounts(input=3)),
    ],
)
def test_rankings(usage, tokens):
    assert tokens_of_reranking(usage) == tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"type": "duration", "seconds": 9}, TokenCounts(audio_ms=9000)),
        ({"type": "duration", "seconds": 1.2345}, TokenCounts(audio_ms=1234)),
        (
            {
                "type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59,
                "input_token_details": {"text_tokens": 4, "audio_tokens": 10},
            },
            TokenCounts(input=4, audio_input=10, output=45),
        ),
        ({"input_tokens": 14, "output_tokens": 2}, TokenCounts(audio_input=14, output=2)),
        (
            {"input_tokens": 14, "output_tokens": 0, "input_token_details": {"text_tokens": 1}},
            TokenCounts(input=1, audio_input=13),
        ),
        (
            {"input_tokens": 14, "output_tokens": 3, "input_token_details": {"text_tokens": 14}},
            TokenCounts(input=14, output=3),
        ),
        (
            {"prompt_audio_seconds": 7, "prompt_tokens": 3, "completion_tokens": 5},
            TokenCounts(audio_input=3, output=5, audio_ms=7000),
        ),
    ],
)  # fmt: skip
def test_transcripts(usage, tokens):
    assert tokens_of_transcription(usage) == tokens


@pytest.mark.parametrize(
    "usage",
    [
        {}, {"seconds": "9"}, {"seconds": True}, {"seconds": -1}, {"seconds": 1e12},
        {"seconds": float("nan")}, {"search_units": 2_000_000}, {"search_units": 1.5},
        {"total_tokens": -1, "search_units": 1}, {"input_tokens": "x"},
        {"input_tokens": 3, "input_token_details": {"text_tokens": 2, "audio_tokens": 2}},
    ],
)  # fmt: skip
def test_what_no_target_can_have_meant_is_refused(usage):
    with pytest.raises(UsageError):
        tokens_of_transcription(usage)
    if "input_token_details" not in usage:  # a ranking has no sound to contradict it
        with pytest.raises(UsageError):
            tokens_of_reranking(usage)


def test_a_part_of_a_search_is_a_whole_one_and_disputed():
    usage = {"prompt_tokens": 10, "completion_tokens": 20, "num_search_queries": 1.5}
    with pytest.raises(UsageContradiction) as found:
        tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert found.value.most == TokenCounts(10, output=20, searches=2)


@pytest.mark.parametrize(
    ("usage", "partly_read"),
    [
        ({"prompt_tokens": 9, "cached_tokens": 2}, False),
        ({"prompt_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 2}}, False),
        ({"prompt_tokens": 9, "holograms": 2}, True),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"holograms": 2}}, True),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 2}}, False),
        ({"prompt_tokens": 9, "holograms": 0}, False),
        *(
            ({"prompt_tokens": 9, "holograms": text}, True)
            for text in ("7", "7.0", "1e3", "+7", " 7", "-2", "9" * 19, "9" * 50)
        ),
        *(
            ({"prompt_tokens": 9, "holograms": text}, False)
            for text in ("", "0", "0.0", "few", "-")
        ),
        ({"prompt_tokens": 9, "a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 9}}}}}}}}, True),
        ({"prompt_tokens": 9, "a": {"b": {"c": {"d": {"e": {"f": {"g": {}}}}}}}}, False),
        # A member's name is known where it stands, and nowhere else.
        ({"prompt_tokens": 9, "completion_tokens_details": {"prompt_tokens": 2}}, True),
        ({"prompt_tokens": 9, "reasoning_tokens": 2, "other": {"cached_tokens": 2}}, True),
    ],
)
def test_a_count_that_nobody_knows_makes_a_usage_partly_read(usage, partly_read) -> None:
    assert has_unread(usage) is partly_read


NAMES_OF = {
    meaning: [path for path, told in MEMBERS.items() if told is meaning and "[" not in path]
    for meaning in UsageCount
    if meaning not in (UsageCount.INCLUDED, UsageCount.CREATED)
}


@given(st.data(), st.sampled_from([name for name in NAMES_OF if len(NAMES_OF[name]) > 1]))
def test_names_of_one_count_that_differ_are_told_and_the_most_is_kept(data, meaning) -> None:
    chosen = st.lists(st.sampled_from(NAMES_OF[meaning]), min_size=2, max_size=2, unique=True)
    usage: dict = {}
    for path, count in zip(data.draw(chosen), data.draw(st.permutations((300, 701))), strict=True):
        *outer, name = path.split(".")
        place = usage
        for part in outer:
            place = place.setdefault(part, {})
        place[name] = count
    odd: list[str] = []
    assert counts_of(usage, odd.append)[meaning] == 701
    assert odd, usage
    if meaning is UsageCount.PROMPT:
        with pytest.raises(UsageContradiction) as told:
            tokens_from_usage(usage, INSIDE)
        assert told.value.most.input == 701


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (  # a translation that keeps the names and the counts of both dialects
            {"prompt_tokens": 100, "input_tokens": 10, "cache_read_input_tokens": 90,
             "completion_tokens": 7, "output_tokens": 7},
            TokenCounts(10, 90, output=7),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 90, "output_tokens": 10,
             "completion_tokens_details": {"reasoning_tokens": 80}, "total_tokens": 190},
            TokenCounts(100, output=90, reasoning=80),
        ),
        ({"prompt_tokens": 100, "completion_tokens": None, "total_tokens": 120},
         TokenCounts(100, output=20)),
    ],
)  # fmt: skip
def test_names_that_differ_by_a_part_are_both_right(usage, tokens) -> None:
    assert tokens_from_usage(usage, INSIDE) == tokens


def test_a_prompt_of_fewer_tokens_than_its_parts_is_told_with_their_sum() -> None:
    split = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40}
    usage = {"prompt_tokens": 50, "cached_tokens": 20, "cache_creation": split}
    with pytest.raises(UsageError, match="20 cached \\+ 70 written of 50 in the prompt"):
        tokens_from_usage(usage, INSIDE)


@pytest.mark.parametrize("convention", Convention)
@pytest.mark.parametrize(
    ("beside", "tokens"),
    [
        ({}, TokenCounts(input=10, output=4)),
        (
            {"completion_tokens_details": {"reasoning_tokens": 3}},
            TokenCounts(input=10, output=4, reasoning=3),
        ),
    ],
)
def test_a_total_of_zero_beside_counts_is_one_that_nobody_added_up(
    beside, tokens, convention
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 0}
    assert tokens_from_usage(usage | beside, convention) == tokens
    with pytest.raises(UsageContradiction):  # the control
        tokens_from_usage({**usage, **beside, "total_tokens": 1}, convention)


def test_members_count_in_the_same_order_however_deep_their_usage_is():
    """Of two names whose numbers differ by what one has inside, the table's first counts."""
    usage = {
        "input_tokens": 100, "prompt_tokens": 900, "output_tokens": 5,
        "prompt_tokens_details": {"tool_use_tokens": 800},
    }  # fmt: skip
    deep = {**usage, "completion_tokens_details": {"odd": [1]}}
    odd: list[str] = []
    assert counts_of(deep, odd.append) == counts_of(usage, odd.append)
    assert (counts_of(deep, odd.append)[UsageCount.PROMPT], odd) == (900, [])
