"""Speech: a text spoken, as a sound file or as a stream of events.

Prices are by the character of the text, or by tokens of the text and of the sound.
"""

from typing import Final

from backends.answers import refuse_text
from gateway.errors import RequestError
from gateway.http.body import Members, decode_member
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import MODEL, OBJECT, TEXT, body_schema
from gateway.kinds.prompt_bytes import prompt_bytes, rewritten_tokens
from gateway.kinds.relay import ByteRelay
from gateway.kinds.sound_flow import TOKENS_PER_S, SoundFlow, bytes_per_s
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    KindUnits,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_members import NO_FEATURES, model_of, refuse_others, refuse_store
from gateway.kinds.typed_events import TypedRelay
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, bound_pusd, units_bound_pusd
from ledger.prices.rates import ReachableMedia
from ledger.unit_usage import tokens_of_speech
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import RoutingRequest

CHARACTERS_MOST: Final = 100_000  # above every provider's limit (2026-11)
SLOWEST, FASTEST = 0.25, 4.0  # range of OpenAI's `speed`
# Speech is about 15 characters a second; a number or a sign may be several words, and the voice
# may be instructed to speak slowly.
MS_PER_CHARACTER, MS_PER_CHARACTER_MOST = 70, 1_000
PAUSE_MS_MOST = 10_000
TOKENS_PER_S_MOST: Final = 50
FORMATS: Final = ("mp3", "opus", "aac", "flac", "wav", "pcm")
_SPOKEN: Final = ReachableMedia(audio_input=False, images=False)


def read_speech(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the parameter and the fix."""
    refuse_other_spellings(members)
    model, text = model_of(members), decode_member(members, "input", str)
    if not text:
        raise RequestError(
            "bad_request", "`input` is required and must be the text to speak.", param="input"
        )
    if len(text) > CHARACTERS_MOST:
        words = f"`input` has {len(text)} characters; one request may have {CHARACTERS_MOST}."
        raise RequestError("bad_request", words, param="input")
    for name in ("instructions", "response_format"):
        decode_member(members, name, str)
    decode_member(members, "voice", str | dict[str, object])
    refuse_others(members, "input")
    refuse_store(members)
    if "n" in members and bytes(members["n"]) != b"null":
        raise RequestError("unsupported", "`n` does not apply to speech.", param="n")
    return InferenceRequest(
        kind=RequestKind.SPEECH,
        path="/audio/speech",
        model=model,
        stream=_is_streamed(members),
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=1,
        max_tokens=0,
        prompt_bytes=prompt_bytes(members),
        seldom_read_bytes=rewritten_tokens(members),
        features=NO_FEATURES,
        session=body.session,
        members=members,
        extent=_extent_of(text, _speed(members)),
    )


def _is_streamed(members: Members) -> bool:
    word: str = decode_member(members, "stream_format", str, "audio")
    if word not in ("audio", "sse"):
        words = "`stream_format` must be `audio` or `sse`."
        raise RequestError("bad_request", words, param="stream_format")
    return word == "sse"


def _speed(members: Members) -> float:
    speed: float = decode_member(members, "speed", float, 1.0)
    if not SLOWEST <= speed <= FASTEST:
        words = f"`speed` must be between {SLOWEST} and {FASTEST:g}."
        raise RequestError("bad_request", words, param="speed")
    return speed


def _extent_of(text: str, speed: float) -> RequestUnits:
    slow = max(1.0, 1.0 / speed)
    lasts_ms = len(text) * MS_PER_CHARACTER * slow
    most_ms = (len(text) * MS_PER_CHARACTER_MOST + PAUSE_MS_MOST) * slow
    return RequestUnits(
        longest=0.0,
        characters=len(text),
        output_tokens=max(1, round(lasts_ms * TOKENS_PER_S / 1000)),
        output_tokens_bound=round(most_ms * TOKENS_PER_S_MOST / 1000),
    )


def _estimate(request: RoutingRequest, output: int) -> TokenCounts:
    """Return the estimated units; `output` is the received sound in tokens, 0 before it.

    It is not cut to the hold, since tokens above the hold are owed, too.
    """
    extent = request.extent or RequestUnits()
    made = output or min(extent.output_tokens, extent.output_tokens_bound)
    return TokenCounts(
        input=request.prompt_tokens, output=made, audio_output=made, characters=extent.characters
    )


def _bound_of(request: RoutingRequest) -> TokenCounts:
    extent = request.extent or RequestUnits()
    made = extent.output_tokens_bound
    return TokenCounts(
        input=request.prompt_tokens_bound,
        output=made,
        audio_output=made,
        characters=extent.characters,
    )


def _bound_pusd(price: Price, request: RoutingRequest, _output_tokens: int) -> int:
    """Return the maximum charge: tokens of the text, with tokens of sound or characters."""
    extent, prompt = request.extent or RequestUnits(), request.prompt_tokens_bound
    read, whole = (
        bound_pusd(price, prompt_tokens=prompt, output_tokens=output, media=_SPOKEN)
        for output in (0, extent.output_tokens_bound)
    )
    return max(whole, read + units_bound_pusd(price, characters=extent.characters))


def _relay(asked: InferenceRequest, _own: bool) -> ByteRelay:
    return TypedRelay("speech.audio.done", sound_bytes_per_s=bytes_per_s(_format_of(asked)))


def _flow(asked: InferenceRequest) -> ByteRelay:
    return SoundFlow(_format_of(asked))


def _format_of(asked: InferenceRequest) -> str:
    form: str = decode_member(asked.members, "response_format", str, FORMATS[0])
    return form


def _body(_max_n: int) -> Schema:
    members = {
        "model": MODEL,
        "input": {"type": "string", "minLength": 1, "maxLength": CHARACTERS_MOST},
        "voice": {"anyOf": [TEXT, OBJECT]},
        "instructions": {"type": ["string", "null"]},
        "response_format": {"type": ["string", "null"]},
        "speed": {"type": ["number", "null"], "minimum": SLOWEST, "maximum": FASTEST},
        "stream_format": {"enum": ["audio", "sse", None]},
    }
    return body_schema("input", members)


SPEC: Final = RequestKindSpec(
    kind=RequestKind.SPEECH,
    paths={
        "/v1/audio/speech": KindPath(
            json_reader(read_speech),
            PathDescription(
                summary="A text spoken",
                body=_body,
                answer={"type": "string", "format": "binary"},
                form=False,
                streamed=True,
                texts=False,
                media="audio/*",
            ),
        )
    },
    usage=tokens_of_speech,
    units=KindUnits(
        estimate=_estimate, most=_bound_of, bound_pusd=_bound_pusd, exact=lambda _request: True
    ),
    relay=_relay,
    flow=_flow,
    read_answer=refuse_text,
    answer_has_text=False,
    generated=False,
    ranked=False,
    prefix_member=None,
    media_member="input",
    shorten=("input", "Send less text."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page="/usage/audio_speeches",
    otel_operation="speech",  # the conventions have no name for it
    catalog=CatalogFacts("audio_speech", gives="audio", price="character_pusd"),
)
