"""Transcriptions and translations: sound to text.

The sound's duration decides the route and the maximum cost. A form does not state it, so `measure`
has the sound decoded. Everything else passes unchanged between client and target.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from backends.answers import read_transcript
from gateway.errors import RequestError
from gateway.http.forms import FILE, FormRequest, field_of, open_form
from gateway.kinds import request_checks
from gateway.kinds.audio_duration import AudioDuration, decode_length, duration_of
from gateway.kinds.billable_units import billed_ms, sound_tokens
from gateway.kinds.inference_request import BodyReader, IncomingBody, InferenceRequest
from gateway.kinds.openapi_schemas import MODEL, TEXT, answer_schema, form_schema
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    KindUnits,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_members import NO_FEATURES, plain_model
from gateway.kinds.transcript_relay import TranscriptRelay
from gateway.sound.decoded_sound import LONGEST_MS
from gateway.sound.sound_decoder import SoundLengths
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, bound_pusd, units_bound_pusd
from ledger.prices.rates import WITHOUT_IMAGES
from ledger.unit_usage import tokens_of_transcription
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import RoutingRequest

# Speech is about four tokens a second; Whisper writes at most 448 in half a minute.
SPOKEN_TOKENS_PER_S = 20
# Sound under other names than `file`, which a target may transcribe instead: those of Groq,
# Mistral and others.
_ELSEWHERE = frozenset((
    "audio", "audio_base64", "audio_file", "audio_url", "file_id", "file_ids", "file_uri",
    "file_url", "files", "input_audio", "media_url", "uri", "url",
))  # fmt: skip
_NEVER_READ = frozenset((
    FILE, "include[]", "language", "model", "response_format", "stream", "temperature",
    "timestamp_granularities[]", "stream_include_usage", "stream_continuous_usage_stats",
))  # fmt: skip
_SWITCHED = ("stream_include_usage", "stream_continuous_usage_stats")


def read_transcription(body: IncomingBody) -> InferenceRequest:
    return _read_sound("/audio/transcriptions", body)


def read_translation(body: IncomingBody) -> InferenceRequest:
    return _read_sound("/audio/translations", body)


def _read_sound(path: str, body: IncomingBody) -> InferenceRequest:
    form = open_form(body.text, body.content_type)
    model = plain_model(form.field("model"))
    sound = _sound(form)
    for name in _SWITCHED:
        form.flag(name)
    if form.flag("use_beam_search"):
        raise request_checks.refused_member("use_beam_search")
    _refuse_other_sounds(form)
    lasts = duration_of(len(sound), None)
    return InferenceRequest(
        kind=RequestKind.TRANSCRIPTION,
        path=path,
        model=model,
        stream=form.flag("stream"),
        wants_usage=True,
        wants_running_usage=True,
        prompts=1,
        n=1,
        max_tokens=_most_tokens(lasts),
        prompt_bytes=form.bytes_beside(_NEVER_READ),
        features=NO_FEATURES,
        session=body.session,
        members={},
        form=form,
        ignored=form.ignored(),
        extent=_units(lasts),
    )


async def measure(request: InferenceRequest, sounds: SoundLengths) -> InferenceRequest:
    """Return the request with the decoded duration of its sound."""
    sound = b"" if request.form is None else request.form.file() or b""
    lasts = await decode_length(sound, sounds)
    return replace(request, max_tokens=_most_tokens(lasts), extent=_units(lasts))


def _units(lasts: AudioDuration) -> RequestUnits:
    return RequestUnits(
        longest=0.0, audio_ms=lasts.ms, audio_ms_bound=lasts.bound_ms, audio_known=lasts.known
    )


def _most_tokens(lasts: AudioDuration) -> int:
    return -(-lasts.bound_ms * SPOKEN_TOKENS_PER_S // 1000)


def _sound(form: FormRequest) -> bytes:
    found = form.parts.get(FILE)
    if not found or not found[0].is_file:
        words = "`file` is required: the sound itself, sent as a file with its name."
        raise RequestError("bad_request", words, param=FILE)
    sound = form.file()
    if not sound:
        raise RequestError("bad_request", "`file` is empty.", param=FILE)
    return sound


def _refuse_other_sounds(form: FormRequest) -> None:
    """Raise `RequestError` for a sound besides the one whose duration is held."""
    for name, group in form.parts.items():
        plain = field_of(name).casefold()
        is_other = name != FILE and (plain == FILE or any(part.is_file for part in group))
        if is_other or plain in _ELSEWHERE:
            words = f"`{name}` is not taken: the sound is sent in `{FILE}`, once."
            raise RequestError("unsupported", words, param=name)


def _estimate(request: RoutingRequest, output: int) -> TokenCounts:
    extent = request.extent or RequestUnits()
    audio, _ = sound_tokens(extent)
    return TokenCounts(audio_input=audio, output=output, audio_ms=extent.audio_ms)


def _bound_of(request: RoutingRequest) -> TokenCounts:
    """Return the maximum that is booked if the target reports no count.

    A sound of unknown duration is booked at the longest duration of its bytes; its hold was larger.
    """
    extent, output = request.extent or RequestUnits(), request.max_tokens or 0
    if extent.audio_ms_bound >= LONGEST_MS:
        extent = RequestUnits(audio_ms_bound=extent.audio_ms)
        output = -(-extent.audio_ms_bound * SPOKEN_TOKENS_PER_S // 1000)
    _, audio = sound_tokens(extent)
    return TokenCounts(audio_input=audio, output=output, audio_ms=extent.audio_ms_bound)


def _bound_pusd(price: Price, request: RoutingRequest, output_tokens: int) -> int:
    """Return the maximum charge: by tokens, or by seconds with tokens of texts.

    Mistral lists both for one model: sound is charged by seconds, its text by tokens.
    """
    extent, prompt = request.extent or RequestUnits(), request.prompt_tokens_bound
    _, heard = sound_tokens(extent)
    whole, texts = (
        bound_pusd(price, prompt_tokens=read, output_tokens=output_tokens, media=WITHOUT_IMAGES)
        for read in (prompt, max(0, prompt - heard))
    )
    lasts_ms = billed_ms(price, extent.audio_ms_bound)
    return max(whole, texts + units_bound_pusd(price, audio_ms=lasts_ms))


def _exact(request: RoutingRequest) -> bool:
    return request.extent is not None and request.extent.audio_known


def _body(_max_n: int) -> Schema:
    switch: Schema = {"enum": ["true", "false", "1", "0"]}
    return form_schema(
        {
            "model": MODEL,
            FILE: {"type": "string", "format": "binary", "minLength": 1},
            "language": TEXT,
            "prompt": TEXT,
            "response_format": TEXT,
            "stream": switch,
            "stream_include_usage": switch,
            "stream_continuous_usage_stats": switch,
        }
    )


def _path(read: Callable[[IncomingBody], InferenceRequest], summary: str) -> KindPath:
    fix = "Send the sound as `multipart/form-data`, with the parts `file` and `model`."
    return KindPath(
        BodyReader(read, "multipart/form-data", fix),
        PathDescription(
            summary=summary,
            body=_body,
            answer=answer_schema("text"),
            form=True,
            streamed=True,
            texts=True,
        ),
    )


SPEC: Final = RequestKindSpec(
    kind=RequestKind.TRANSCRIPTION,
    paths={
        "/v1/audio/transcriptions": _path(read_transcription, "Sound written down"),
        "/v1/audio/translations": _path(read_translation, "Sound written down in English"),
    },
    usage=tokens_of_transcription,
    units=KindUnits(estimate=_estimate, most=_bound_of, bound_pusd=_bound_pusd, exact=_exact),
    relay=lambda _asked, _own: TranscriptRelay(),
    read_answer=read_transcript,
    answer_has_text=True,
    generated=True,
    ranked=False,
    prefix_member=None,
    media_member="file",
    shorten=("file", "Send less sound, in a format that can be decoded."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page="/usage/audio_transcriptions",
    measure=measure,
    otel_operation="transcription",  # the conventions have no name for it
    catalog=CatalogFacts("audio_transcription", takes="audio", gives="text", price="second_pusd"),
)
