"""Speech, pictures, scores and moderations: honest and false, whole, streamed and broken off."""

import json
from typing import Any

from adversary_answers import EVENTS, WORD
from adversary_calls import AdversaryCall
from adversary_prices import PER_MILLION, terms
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.journals.records import TokenCounts
from ledger.prices.book import PriceTerms, TierRates, rates_from

SPEECH, PICTURES = "/v1/audio/speech", "/v1/images/generations"
SCORES, MODERATIONS = "/v1/score", "/v1/moderations"
FORMS = ("1024x1024", "1024x1792", "hd/1024x1024", "hd/1024x1792", "4k")
FREE = rates_from({"input": 0, "output": 0})
WORDS = st.integers(1, 300)
FAR = 10**6


def _free(made: PriceTerms, **units: Any) -> PriceTerms:
    return replace(made, rates=FREE, schedules=(), **units)


BY_CHARACTER = terms().map(lambda made: _free(made, character_pusd=15 * PER_MILLION))
IN_SOUND = terms(sound=True).map(lambda made: replace(made, schedules=()))


@st.composite
def by_form(draw: Any) -> PriceTerms:
    """A price of a picture in each form; of any other the dearest."""
    prices = {form: draw(st.integers(1, 400)) * 10**9 for form in FORMS}
    forms = tuple(TierRates(form, 0, FREE, prices[form]) for form in sorted(FORMS))
    return replace(_free(draw(terms())), schedules=forms, picture_pusd=max(prices.values()))


@st.composite
def by_picture_token(draw: Any) -> PriceTerms:
    """A price of a picture's token, and perhaps one of a picture, which then is none."""
    made = draw(terms())
    rates = replace(made.rates, image_output=draw(st.integers(1, 60)) * PER_MILLION)
    pusd = draw(st.sampled_from((0, 40 * 10**9)))
    return replace(made, rates=rates, schedules=(), picture_pusd=pusd)


def call(path: str, body: dict, *pieces: bytes, **more: Any) -> AdversaryCall:
    text = json.dumps({"model": "up/m", **body}).encode()
    return AdversaryCall(path, text, pieces, **more)


def event(kind: str, **members: Any) -> bytes:
    return b"data: " + json.dumps({"type": kind, **members}).encode() + b"\n\n"


# ---------------------------------------------------------------- speech


@st.composite
def spoken_file(draw: Any, *, leaves: bool = False) -> AdversaryCall:
    text = WORD * draw(WORDS)
    pieces = [b"\x01" * draw(st.integers(1, 5_000)) for _ in range(draw(st.integers(1, 4)))]
    made = TokenCounts(characters=len(text))
    body = {"input": text, "voice": "a", "response_format": draw(st.sampled_from(("mp3", "wav")))}
    ending: dict[str, Any] = {"made": made}
    if leaves:
        at = draw(st.integers(0, len(pieces) - 1))
        cut = draw(st.sampled_from((None, at)))
        ending = {"made": None, "least": made, "leave_at": at, "cut_at": cut}
    return call(SPEECH, body, *pieces, media_type="audio/mpeg", **ending)


@st.composite
def spoken_events(draw: Any, *, lie: str = "") -> AdversaryCall:
    words = draw(WORDS)
    output = draw(st.integers(1, words * 40))
    usage = {"input_tokens": words, "output_tokens": output, "total_tokens": words + output}
    made = TokenCounts(input=words, output=output, audio_output=output)
    ending: dict[str, Any] = {"made": made}
    if lie:
        told = FAR if lie == "output" else 10**8
        usage = {**usage, f"{lie}_tokens": told, "total_tokens": told + words + output}
        ending = {"made": None, "is_lie": True}
    body = {"input": WORD * words, "voice": "a", "stream_format": "sse"}
    pieces = [event("speech.audio.delta", audio="AAAA") for _ in range(draw(st.integers(1, 3)))]
    done = event("speech.audio.done", usage=usage)
    return call(SPEECH, body, *pieces, done, media_type=EVENTS, **ending)


@st.composite
def spoken_in_tokens(draw: Any, *, bytes_per_s: int, form: str, longer: bool = False) -> Any:
    """A file that tells no usage, of which a token of sound is charged: 20 a second at least.

    `longer`: than any voice can speak the text, so that its bill may be above the hold.
    """
    text = WORD * draw(WORDS)
    size = max(1, draw(st.integers(1, len(text))) * bytes_per_s // 15)
    if longer:
        text, size = WORD, (len(WORD) + 10) * 3 * bytes_per_s
    pieces = [b"\x01" * part for part in (size // 2, size - size // 2) if part]
    made = 20 * size // bytes_per_s
    least = TokenCounts(input=1, output=made, audio_output=made)
    ending: dict[str, Any] = {"is_lie": True} if longer else {"least": least}
    body = {"input": text, "voice": "a", "response_format": form}
    return call(SPEECH, body, *pieces, media_type=f"audio/{form}", made=None, **ending)


# ---------------------------------------------------------------- pictures


@st.composite
def pictures_of_a_form(draw: Any, *, more: int = 0) -> AdversaryCall:
    """Asked for with a form or without; what the answer tells counts. `more`: than were asked."""
    form, n = draw(st.sampled_from(FORMS[:4])), draw(st.integers(1, 4))
    quality, _, size = form.rpartition("/")
    named = {"quality": quality or "standard", "size": size}
    asked = {name: word for name, word in named.items() if draw(st.booleans())}
    data = [{"url": "https://a.example/1.png"}] * (n + more)
    answer = {"data": data, **named}
    made = TokenCounts(pictures=n + more)
    body = {"prompt": WORD * draw(WORDS), "n": n, **asked}
    text = json.dumps(answer).encode()
    return call(PICTURES, body, text, made=made, tier=form, is_odd=more > 0)


@st.composite
def pictures_in_tokens(draw: Any, *, stream: bool, lie: int | None = None) -> AdversaryCall:
    words, n = draw(WORDS), draw(st.integers(1, 4))
    quality, most = draw(st.sampled_from((("low", 408), ("medium", 1_584), ("high", 6_240))))
    shown = draw(st.integers(0, 3)) if stream else 0
    output = n * (draw(st.integers(16, most)) + 100 * shown)
    told = output if lie is None else lie
    usage = {
        "input_tokens": words, "output_tokens": told, "total_tokens": words + told,
        "input_tokens_details": {"text_tokens": words, "image_tokens": 0},
    }  # fmt: skip
    form = {"quality": quality, "size": "1024x1536"}
    body = {"prompt": WORD * words, "n": n, "quality": quality}
    made = TokenCounts(input=words, output=output, image_output=output, pictures=n)
    ending: dict[str, Any] = {"made": made} if lie is None else {"made": None, "is_lie": True}
    if not stream:
        answer = {"data": [{"b64_json": "AAAA"}] * n, "usage": usage, **form}
        return call(PICTURES, body, json.dumps(answer).encode(), **ending)
    body |= {"stream": True, "partial_images": shown}
    partial = event("image_generation.partial_image", b64_json="AAAA", **form)
    done = event("image_generation.completed", b64_json="AAAA", **form)
    last = event("image_generation.completed", b64_json="AAAA", usage=usage, **form)
    pieces = [*[partial] * shown, *[done] * (n - 1), last]
    return call(PICTURES, body, *pieces, media_type=EVENTS, **ending)


@st.composite
def pictures_given_up(draw: Any) -> AdversaryCall:
    """A stream whose client leaves before it is told of anything, and that is cut off there."""
    words = draw(WORDS)
    partial = event("image_generation.partial_image", b64_json="AAAA")
    body = {"prompt": WORD * words, "stream": True, "partial_images": 3, "quality": "high"}
    least = TokenCounts(input=1, output=100, image_output=100)
    return call(
        PICTURES, body, partial, partial, media_type=EVENTS,
        made=None, least=least, leave_at=1, cut_at=2,
    )  # fmt: skip


# ---------------------------------------------------------------- texts


@st.composite
def scored(draw: Any, *, lie: int | None = None) -> AdversaryCall:
    words, count = draw(WORDS), draw(st.integers(1, 40))
    read = count * (words + 4)
    told = read if lie is None else lie
    answer = {"data": [{"index": 0, "score": 0.5}], "usage": {"prompt_tokens": told}}
    body = {"text_1": WORD * words, "text_2": ["word"] * count}
    made = {"made": TokenCounts(input=read)} if lie is None else {"made": None, "is_lie": True}
    return call(SCORES, body, json.dumps(answer).encode(), **made)


@st.composite
def moderated(draw: Any, *, counts: bool = True) -> AdversaryCall:
    words = draw(WORDS)
    answer = {"results": [{"flagged": False}]}
    if counts:
        answer |= {"usage": {"prompt_tokens": words}}
    made = TokenCounts(input=words) if counts else None
    least = TokenCounts(input=0 if counts else 1)
    body = {"input": WORD * words}
    return call(MODERATIONS, body, json.dumps(answer).encode(), made=made, least=least)


# By kind: the calls, and the prices that they are played at.
UNIT_CALLS: dict[str, tuple[Any, Any]] = {
    "speech": (spoken_file(), BY_CHARACTER),
    "left-speech": (spoken_file(leaves=True), BY_CHARACTER),
    "speech-tokens": (spoken_events(), IN_SOUND),
    "speech-file": (spoken_in_tokens(bytes_per_s=8_000, form="mp3"), IN_SOUND),
    "speech-file-opus": (spoken_in_tokens(bytes_per_s=4_000, form="opus"), IN_SOUND),
    "speech-longer": (
        spoken_in_tokens(bytes_per_s=3_000, form="opus", longer=True),
        IN_SOUND,
    ),
    "lie-speech-sound": (spoken_events(lie="output"), IN_SOUND),
    "pictures-form": (pictures_of_a_form(), by_form()),
    "pictures-more": (pictures_of_a_form(more=6), by_form()),
    "pictures-tokens": (pictures_in_tokens(stream=False), by_picture_token()),
    "pictures-streamed": (pictures_in_tokens(stream=True), by_picture_token()),
    "lie-pictures-tokens": (pictures_in_tokens(stream=False, lie=10**7), by_picture_token()),
    "lie-pictures-low": (pictures_in_tokens(stream=False, lie=1), by_picture_token()),
    "left-pictures": (pictures_given_up(), by_picture_token()),
    "scores": (scored(), terms()),
    "lie-scores": (scored(lie=10**7), terms()),
    "lie-scores-low": (scored(lie=1), terms()),
    "moderation": (moderated(), terms()),
    "moderation-free": (moderated(), terms().map(_free)),
    "moderation-silent": (moderated(counts=False), terms()),
}
