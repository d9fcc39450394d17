"""Schedules by kind: `KINDS` names the strategies; a fault of a kind is a fault of all like it."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

from adversary_answers import (
    COMPLETION,
    EVENTS,
    WORD,
    answered,
    choice,
    embedding,
    embeddings,
    event,
    false_embedding,
    heard,
    ranking,
    transcript,
)  # fmt: skip
from adversary_calls import AdversaryCall, AdversarySchedule
from adversary_hidden import broken, hidden, in_asked_tier, kept_back, overstated, untold, withheld
from adversary_pictures import picture_by_rule
from adversary_prices import UNITS, limit_pusd, terms
from adversary_refused import broken_search, counted_refusal, limited_search
from adversary_tiers import of_account
from adversary_units import UNIT_CALLS
from adversary_usage import CONVENTIONS, FAR, LIES, openai
from hypothesis import strategies as st
from msgspec.structs import replace as replace_counts

from ledger.journals.records import TokenCounts
from ledger.prices.book import PriceTerms, TokenRates, rates_from
from ledger.prices.modellimits import ModelLimits

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400}}
SPOKEN = {"modalities": ["text", "audio"], "audio": {"voice": "a", "format": "wav"}}
MEMBERS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.5, "seed": 7, "user": "u"},
    {"metadata": {"a": "b"}},
    {"logit_bias": {"5": 1}},
    {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
)
FILES: dict[str, dict[str, Any]] = {
    "id": {"type": "file", "file": {"file_id": "file-1"}},
    "data": {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
    "document": {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
    "film": {"type": "video", "video": ["https://a.example/1.png"]},
    "address": {"type": "document_url", "document_url": "https://a.example/b.pdf"},
}
# Of a model that takes all that is honest here, and of none that is known. The words of a text are
# fewer than the small context's tokens.
WORDS = st.integers(1, 400)
STATED = st.sampled_from((None, ModelLimits(64_000, 250_000)))
SMALL = st.just(ModelLimits(512, 512))


@st.composite
def schedules(
    draw: Any, calls: Any, prices: Any = None, most: int = 3, limits: Any = STATED
) -> AdversarySchedule:
    """Up to `most` calls under a budget that is ample, or about as much as they cost."""
    chosen = draw(terms() if prices is None else prices)
    made = draw(st.lists(calls, min_size=1, max_size=most))
    part = None if draw(st.integers(0, 2)) else draw(st.floats(0, 1))
    limit = limit_pusd(chosen, made, part=part)
    return AdversarySchedule(chosen, limit, tuple(made), draw(limits))


@st.composite
def texts(draw: Any, tells: frozenset[str] = frozenset(), **fixed: Any) -> tuple[dict, TokenCounts]:
    """A chat request, and what an honest provider makes of it: never more than is allowed."""
    words, n = draw(st.integers(1, 400)), draw(st.sampled_from((1, 1, 1, 2, 3)))
    said, thought = draw(st.integers(1, 120)), 0  # together less than any cap of ours
    if "reasoning" in tells:
        thought = draw(st.integers(0, 130))
    cached = draw(st.integers(0, words)) if "cached" in tells else 0
    written = draw(st.integers(0, words - cached)) if "cache_write" in tells else 0
    limit = draw(st.sampled_from((None, said + thought, said + thought + 50)))
    body = {
        "model": "up/m",
        "messages": [{"role": "user", "content": WORD * words}],
        "stream": draw(st.booleans()),
        **draw(st.sampled_from(MEMBERS)),
        **fixed,
    }
    body |= {"n": n} if n > 1 else {}
    body |= {} if limit is None else {"max_tokens": limit}
    made = TokenCounts(
        input=words - cached - written,
        cached=cached,
        cache_write=written,
        output=n * (said + thought),
        reasoning=n * thought,
    )
    return body, made


# ---------------------------------------------------------------- honest


def honest(convention: str, at: str = "last", **fixed: Any) -> Any:
    writes, tells = CONVENTIONS[convention]
    return texts(tells, **fixed).map(lambda made: answered(*made, writes(made[1]), at=at))


def of_completions() -> Any:
    """Lists of prompts, each with its own choices."""

    def call(made: tuple[dict, TokenCounts], prompts: int) -> AdversaryCall:
        body, one = made
        text = body["messages"][0]["content"]
        each = one.output // body.get("n", 1)
        kept = {"n": min(body.get("n", 1), 2), "prompt": [text] * prompts, "max_tokens": each}
        kept |= {"model": body["model"], "stream": body["stream"]}
        many = TokenCounts(input=one.input * prompts, output=each * kept["n"] * prompts)
        return answered(kept, many, openai(many), path=COMPLETION)

    return st.builds(call, texts(), st.integers(1, 4))


def more_choices() -> Any:
    """More choices than were asked for, each as long as was allowed, and all of them counted."""

    def call(made: tuple[dict, TokenCounts], more: int) -> AdversaryCall:
        body, one = made
        asked = body.get("n", 1)
        said = one.output // asked
        many = replace_counts(one, output=said * (asked + more))
        answer = answered(
            {**body, "n": asked + more}, many, openai(many), is_odd=True, is_beside=True
        )
        kept = {**body, "max_tokens": said}
        return replace(answer, body=json.dumps(kept).encode())

    return st.builds(call, texts(), st.integers(1, 9))


def with_media(part: dict[str, Any], tokens: Any, *, is_beyond: bool = False) -> Any:
    def call(made: tuple[dict, TokenCounts], more: int) -> AdversaryCall:
        body, one = made
        text = {"type": "text", "text": body["messages"][0]["content"]}
        asked = {**body, "messages": [{"role": "user", "content": [text, part]}]}
        seen = replace_counts(one, input=one.input + more)
        return answered(asked, seen, openai(seen), is_beyond=is_beyond)

    return st.builds(call, texts(), tokens)


def spoken() -> Any:
    """All of the output is sound, which has a price of its own."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body, one = made
        sound = replace_counts(one, audio_output=one.output)
        return answered({**body, **SPOKEN, "stream": False}, sound, openai(sound))

    return texts().map(call)


def spoken_in_escapes() -> Any:
    """The same; the request writes the name of sound in another spelling."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body, one = made
        sound = replace_counts(one, audio_output=one.output)
        asked = {**body, "max_tokens": one.output, "modalities": ["text", "audio"]}
        made_whole = answered({**asked, "stream": False}, sound, openai(sound))
        return replace(made_whole, body=made_whole.body.replace(b'"audio"', b'"\\u0061udio"'))

    return texts().map(call)


def with_file(part: dict[str, Any]) -> Any:
    """A file that the target opens: few bytes, many tokens."""

    def call(made: tuple[dict, TokenCounts], more: int) -> AdversaryCall:
        body, one = made
        text = {"type": "text", "text": body["messages"][0]["content"]}
        asked = {**body, "messages": [{"role": "user", "content": [text, part]}]}
        read = replace_counts(one, input=one.input + more)
        return answered(asked, read, openai(read))

    return st.builds(call, texts(), st.integers(1_000, 100_000))


def searched() -> Any:
    """A search that the target runs: its pages are read, too, and it has a fee."""

    def call(made: tuple[dict, TokenCounts], more: int, searches: int) -> AdversaryCall:
        body, one = made
        read = replace_counts(one, input=one.input + more, searches=searches)
        usage = {**openai(read), "num_search_queries": searches}
        return answered({**body, "web_search_options": {}}, read, usage)

    return st.builds(call, texts(), st.integers(0, 100_000), st.integers(0, 5))


def repeated(*, echo: bool) -> Any:
    """An answer that begins with the prompt: a completion's, or a message's to go on from."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body, one = made
        text = body["messages"][0]["content"]
        kept = {key: body[key] for key in ("model", "stream", "n", "max_tokens") if key in body}
        if echo:
            kept |= {"prompt": text, "echo": True, "max_tokens": one.output // body.get("n", 1)}
            return answered(kept, one, openai(one), path=COMPLETION, before=text)
        last = {"role": "assistant", "content": text, "prefix": True}
        kept["messages"] = [{"role": "user", "content": "go"}, last]
        return answered(kept, one, openai(one), before=text)

    return texts().map(call)


def beside_limit(*, asks: bool = False) -> Any:
    """Thinking that is billed beside `max_tokens`; who `asks` for it is held for more alone."""

    def call(made: tuple[dict, TokenCounts], thought: int) -> AdversaryCall:
        body, one = made
        said = {**body, "max_tokens": one.output // body.get("n", 1)}
        said |= {"enable_thinking": True} if asks else {}
        more = replace_counts(one, output=one.output + thought, reasoning=thought)
        return answered(said, more, openai(more), is_odd=True, is_beside=not asks)

    return st.builds(call, texts(), st.integers(100, 2_000))


def unlimited() -> Any:
    """A target that does not know the newer name of the limit, and writes on."""

    def call(made: tuple[dict, TokenCounts], limit: int) -> AdversaryCall:
        body, one = made
        asked = {name: value for name, value in body.items() if name != "max_tokens"}
        more = replace_counts(one, output=one.output + 200 * body.get("n", 1))
        return answered({**asked, "max_completion_tokens": limit}, more, openai(more), is_odd=True)

    return st.builds(call, texts(), st.integers(1, 50))


def in_tier(tier: str) -> Any:
    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        usage = {**openai(made[1]), "service_tier": tier}
        return answered(*made, usage, tier=tier)

    return texts(CONVENTIONS["openai"][1]).map(call)


def embedded(*, total_alone: bool) -> Any:
    def call(words: int) -> AdversaryCall:
        usage = {"total_tokens": words} | ({} if total_alone else {"prompt_tokens": words})
        return embedding(words, usage, made=TokenCounts(input=words))

    return st.integers(1, 400).map(call)


def embedded_list() -> Any:
    """As many contexts as texts: each of them may fill one."""

    def call(words: list[int]) -> AdversaryCall:
        usage = {"prompt_tokens": sum(words), "total_tokens": sum(words)}
        return embeddings(words, usage, made=TokenCounts(input=sum(words)))

    return st.lists(WORDS, min_size=1, max_size=40).map(call)


# ---------------------------------------------------------------- leaving, failing, lying


def left(tells: frozenset[str] = frozenset(), at: str = "last", *, cut: bool = False) -> Any:
    """A stream whose client leaves; hidden thinking was made before the first word.

    `cut`: what is read without the client does not reach the end.
    """

    @st.composite
    def calls(draw: Any) -> AdversaryCall:
        body, made = draw(texts(tells, stream=True))
        call = answered(body, made, openai(made), at=at)
        words = [piece.count(WORD.encode()) for piece in call.pieces]
        finish_at = len(words) - 2 - body.get("n", 1)
        leave_at = draw(st.integers(0, min(finish_at, 1) if cut else finish_at))
        cut_at = min(finish_at, leave_at + draw(st.integers(0, 2))) if cut else None
        said = sum(words[: leave_at if cut_at is None else cut_at])
        least = replace_counts(made, output=made.reasoning + said)
        return replace(call, made=None, leave_at=leave_at, cut_at=cut_at, least=least)

    return calls()


def silent(at: str = "last") -> Any:
    """A stream that is asked to think, and has not said a word when its upstream is given up."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body = {**made[0], "reasoning_effort": "high"}
        silent_at = int(at == "first")  # behind a first figure, or before all
        least = replace_counts(made[1], output=made[1].reasoning)
        answer = answered(body, made[1], openai(made[1]), at=at)
        return replace(answer, made=None, silent_at=silent_at, least=least)

    return texts(CONVENTIONS["openai"][1], stream=True).map(call)


def heard_in_tokens(prompt: int, output: int, said: str, **call: Any) -> Any:
    """A transcript that is counted in tokens; ten a second are made at least."""

    def made(seconds: int) -> AdversaryCall:
        usage = {"type": "tokens", "input_tokens": prompt, "output_tokens": output}
        usage |= {"total_tokens": prompt + output}
        least = TokenCounts(audio_input=10 * seconds, output=len(said) // 128)
        return heard(seconds, {"text": said, "usage": usage}, made=None, least=least, **call)

    return st.integers(10, 60).map(made)


def heard_in_part() -> Any:
    """A transcript as vLLM streams it, with running usage; nobody reads the end of it."""

    def made(seconds: int, said: int, cut_at: int) -> AdversaryCall:
        usage = {"prompt_tokens": 10 * seconds, "completion_tokens": 1}
        usage |= {"total_tokens": 10 * seconds + 1}
        chunk = event(choice("", 0, "delta", WORD), usage=usage)
        least = TokenCounts(audio_input=10 * seconds, output=said)
        stream = (chunk, *[event(choice("", 0, "delta", WORD))] * said)
        leave = {"leave_at": min(1, cut_at), "cut_at": cut_at}
        return heard(seconds, {}, stream=stream, made=None, least=least, **leave)

    # What is made of a minute's sound while nobody reads is at most what it can have.
    return st.builds(made, st.integers(10, 60), st.integers(20, 100), st.integers(1, 3))


def instructed() -> Any:
    """A ranking whose instruction, a vendor's member, is read with every document."""

    def made(documents: int, words: int) -> AdversaryCall:
        tokens = documents * (words + 2)
        return ranking(
            documents, 0, usage={"total_tokens": tokens}, made=TokenCounts(input=tokens),
            members={"instruct": WORD * words, "top_n": 3},
        )  # fmt: skip

    return st.builds(made, st.integers(1, 90), st.integers(1, 200))


def given_up() -> Any:
    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body = {**made[0], "stream": False}
        made_whole = answered(body, made[1], openai(made[1]), leave_at=0)
        return replace(made_whole, made=None, least=made[1])

    return texts(CONVENTIONS["openai"][1]).map(call)


def failed(answer: bytes, media: str = "application/json") -> Any:
    """An answer that says that nothing was made."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body = {**made[0], "stream": media == EVENTS}
        return replace(
            answered(body, made[1], None), made=TokenCounts(), pieces=(answer,), media_type=media
        )

    return texts().map(call)


def failed_counted(media: str = "application/json") -> Any:
    """An error in the place of an answer that was made and counted."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body, counted = {**made[0], "stream": media == EVENTS}, made[1]
        told = {"error": {"code": "content_filter"}, "usage": openai(counted)}
        piece = json.dumps(told).encode()
        if media == EVENTS:
            piece = b"data: " + piece + b"\n\n"
        return replace(answered(body, counted, None), pieces=(piece,), media_type=media)

    return texts(frozenset({"reasoning"})).map(call)


def lie(name: str, members: dict[str, Any] | None = None, **fixed: Any) -> Any:
    def call(made: tuple[dict, TokenCounts], limit: int) -> AdversaryCall:
        body = {key: made[0][key] for key in ("model", "messages", "stream", "n") if key in made[0]}
        body |= {"max_tokens": limit, **(members or {})}
        usage = LIES[name](openai(made[1]))
        return replace(answered(body, made[1], usage), made=None, is_lie=True)

    return st.builds(call, texts(**fixed), st.integers(120, 400))


def too_low(*, streams: bool, at: str = "last") -> Any:
    """Usage of one token for a text that cannot be less than one token for 128 bytes."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body, one = made
        many = TokenCounts(input=one.input, output=body.get("n", 1) * 200)
        usage = openai(replace_counts(many, output=1))
        asked = {**body, "max_tokens": 300, "stream": streams}
        least = TokenCounts(input=one.input, output=many.output)
        call = answered(asked, many, usage, at=at)
        return replace(call, made=None, least=least, is_lie=True)

    return texts().map(call)


def poisoned(calls: Any, *, most: int = 2) -> Any:
    """The same text before and after others, `most` of them."""

    @st.composite
    def made(draw: Any) -> AdversarySchedule:
        price = draw(terms())
        body = {
            "model": "up/m", "max_tokens": 5,
            "messages": [{"role": "user", "content": WORD * draw(st.integers(100, 400))}],
        }  # fmt: skip
        tokens = TokenCounts(input=100, output=5)
        text = answered(body, tokens, openai(tokens))
        others = draw(st.lists(calls, min_size=1, max_size=most))
        return AdversarySchedule(price, 10**16, (text, *others, text))

    return made()


def again(calls: Any) -> Any:
    """The same call twice, under a budget that is ample."""
    return st.builds(
        lambda price, call: AdversarySchedule(price, 10**16, (call, call)), terms(), calls
    )


def with_searches(terms: PriceTerms) -> PriceTerms:
    return replace_counts(terms, search_pusd=UNITS["search_pusd"], searches_limit=5)


WITH_FEES = terms().map(lambda chosen: replace_counts(with_searches(chosen), searches_limit=0))


def without_reasoning(terms: PriceTerms) -> PriceTerms:
    def merged(rates: TokenRates) -> TokenRates:
        return replace_counts(rates, reasoning=rates.output)

    dearer = tuple(replace_counts(each, rates=merged(each.rates)) for each in terms.schedules)
    return replace_counts(terms, rates=merged(terms.rates), schedules=dearer)


ERROR = b'{"error": {"code": 429, "message": "limited"}}'
IN_CHOICE = json.dumps({
    "id": "c", "usage": {"prompt_tokens": 20, "completion_tokens": 0, "total_tokens": 20},
    "choices": [{
        "index": 0, "error": {"code": 502, "message": "idle"}, "finish_reason": "error",
        "message": {"role": "assistant", "content": ""},
    }],
}).encode()  # fmt: skip
NO_CHOICES = b'{"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}'
SECONDS = st.integers(1, 60)
FREE = rates_from({"input": 0, "output": 0})
IN_UNITS = terms(units=True).map(lambda made: replace_counts(made, rates=FREE, schedules=()))

# Who does not count thoughts apart has no price of its own for them.
ONE_PRICE = terms().map(without_reasoning)

STREAM_PLACES = (
    "beside", "inside", "running", "first", "groq", "message", "metadata", "quoted", "behind",
    "parts", "unended",
)  # fmt: skip
# Calls at any price: those whose invariants hold are mixed with each other.
CALLS = {
    **{f"usage-{name}": honest(name) for name in CONVENTIONS},
    **{f"usage-{at}": honest("openai", at, stream=True) for at in STREAM_PLACES},
    **{
        f"usage-{at}-whole": honest("openai", at, stream=False)
        for at in ("inside", "groq", "message", "metadata", "quoted")
    },
    "echo": repeated(echo=True),
    "prefix": repeated(echo=False),
    **{f"file-{name}": with_file(part) for name, part in FILES.items()},
    "completions": of_completions(),
    "choices-more": more_choices(),
    "picture": with_media(PICTURE, st.integers(0, 300)),
    "picture-of-others": with_media(
        {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
        st.integers(20, 4_000),
    ),
    "picture-dear": with_media(PICTURE, st.just(8_500), is_beyond=True),
    "beside-limit": beside_limit(),
    "embedding": embedded(total_alone=False),
    "embedding-total": embedded(total_alone=True),
    "embedding-list": embedded_list(),
    "failed": failed(ERROR),
    "failed-first": failed(b"data: " + ERROR + b"\n\n", EVENTS),
    "failed-choice": failed(IN_CHOICE),
    "failed-empty": failed(NO_CHOICES),
    "failed-counted": failed_counted(),
    "failed-counted-first": failed_counted(EVENTS),
    "refused-counted": counted_refusal(texts()),
    "left-said": left(),
    "left-thinking": left(frozenset({"reasoning"})),
    "left-first": left(at="first"),
    "left-cut": left(frozenset({"reasoning"}), cut=True),
    "left-cut-first": left(frozenset({"reasoning"}), at="first", cut=True),
    "given-up": given_up(),
    "withheld": withheld(texts()),
    "hidden-overstated": overstated(texts()),
    "broken-thinking": broken(texts()),
    "silent-writing": kept_back(texts()),
    "silent": silent(),
    "silent-first": silent("first"),
    **{f"lie-{name}": lie(name) for name in LIES},
    "lie-metadata": lie("prompt", MEMBERS[2]),
    "lie-bias": lie("prompt", MEMBERS[3]),
    "lie-tools": lie("prompt", MEMBERS[4]),
    "lie-low": too_low(streams=False),
    "lie-low-stream": too_low(streams=True),
    "lie-low-words": too_low(streams=True, at="words"),
    "lie-low-inside": too_low(streams=True, at="inside"),
    "lie-twice": texts(stream=True).map(
        lambda made: answered(*made, openai(made[1]), at="twice", is_odd=True)
    ),
    "lie-embedding": WORDS.map(partial(false_embedding, prompt=FAR)),
    "lie-embedding-base64": WORDS.map(
        partial(false_embedding, prompt=FAR, members={"encoding_format": "base64"})
    ),
    "lie-embedding-zero": WORDS.map(partial(false_embedding, prompt=0)),
    "lie-tier": in_tier("scale").map(lambda call: replace(call, made=None, is_lie=True)),
}
KINDS = {
    **{name: schedules(calls) for name, calls in CALLS.items()},
    **{name: schedules(calls, prices) for name, (calls, prices) in UNIT_CALLS.items()},
    "embedding-small": schedules(embedded_list(), limits=SMALL),
    "completion-small": schedules(of_completions(), limits=SMALL),
    "picture-by-rule": picture_by_rule(texts()),
    "tier": schedules(in_tier("priority"), terms(tiers=True)),
    "tier-asked": schedules(in_asked_tier(texts(), "priority"), terms(tiers=True)),
    "tiers-of-one-account": schedules(of_account(texts()), terms(tiers=True)),
    "left-tiers": schedules(of_account(texts(stream=True), leaves=True), terms(tiers=True)),
    "hidden-untold": schedules(untold(texts())),
    "hidden": schedules(hidden(texts()), ONE_PRICE),
    "hidden-first": schedules(hidden(texts(stream=True), "first"), ONE_PRICE),
    "searched": schedules(searched(), terms().map(with_searches)),
    "searched-broken": schedules(broken_search(texts(stream=True)), terms().map(with_searches)),
    "searched-limited": schedules(limited_search(texts()), WITH_FEES),
    "lie-searched-limited": schedules(limited_search(texts(), is_lie=True), WITH_FEES),
    "spoken": schedules(spoken(), terms(sound=True)),
    "spoken-escapes": schedules(spoken_in_escapes(), terms(sound=True)),
    "ranking": schedules(
        st.integers(1, 90).map(lambda count: ranking(count, 1, made=TokenCounts(searches=1))),
        IN_UNITS,
    ),
    "transcript": schedules(
        SECONDS.map(
            lambda count: transcript(count, count, made=TokenCounts(audio_ms=1000 * count))
        ),
        IN_UNITS,
    ),
    "lie-ranking": schedules(
        st.integers(1, 90).map(lambda count: ranking(count, 10**6, made=None, is_lie=True)),
        IN_UNITS,
    ),
    "lie-transcript-low": schedules(
        st.integers(2, 60).map(
            lambda count: transcript(
                count, 0.4, made=None, is_lie=True, least=TokenCounts(audio_ms=1000 * count)
            )
        ),
        IN_UNITS,
    ),
    "ranking-instructed": schedules(instructed()),
    "lie-ranking-low": schedules(
        st.integers(2, 90).map(
            lambda count: ranking(
                count,
                1,
                words=100,
                usage={"total_tokens": 1},
                made=None,
                is_lie=True,
                least=TokenCounts(input=count * 3),
            )
        )
    ),
    "lie-transcript-tokens": schedules(heard_in_tokens(1, 1, "hi", is_lie=True), terms(sound=True)),
    "lie-transcript-text": schedules(
        heard_in_tokens(600, 1, WORD * 100, is_lie=True), terms(sound=True)
    ),
    "left-transcript": schedules(heard_in_part(), terms(sound=True)),
    "lie-transcript": schedules(
        SECONDS.map(lambda count: transcript(count, 1_799_999, made=None, is_lie=True)), IN_UNITS
    ),
    "beside-again": again(beside_limit()),
    "poison-pictures": poisoned(with_media(PICTURE, st.just(8_500), is_beyond=True)),
    "poison-limits": poisoned(unlimited(), most=1),  # from then on it is told by both names
    "poison-thoughts": poisoned(beside_limit(asks=True), most=1),
    "poison-lies": poisoned(lie("prompt", MEMBERS[2])),
}


def mixed() -> Any:
    """Up to eight calls of all kinds."""
    return schedules(st.one_of(list(CALLS.values())), most=8)
