"""Transcriptions and translations: sound written down.

What is read is what decides where a request goes and what it may cost at most: how long the sound
lasts. Everything else is between client and target.
"""

from collections.abc import Callable
from typing import Final

from backends.answers import read_transcript
from gateway.errors import RequestError
from gateway.http.forms import FILE, FormRequest, open_form
from gateway.kinds import request_checks
from gateway.kinds.audio_duration import duration_of
from gateway.kinds.billable_units import sound_tokens
from gateway.kinds.inference_request import BodyReader, IncomingBody, InferenceRequest
from gateway.kinds.openapi_schemas import MODEL, TEXT, answer_schema, form_schema
from gateway.kinds.spec import KindPath, KindUnits, PathDescription, RequestKindSpec, Schema
from gateway.kinds.text_members import NO_FEATURES, plain_model
from gateway.kinds.transcript_relay import TranscriptRelay
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, beside_bound_pusd, bound_pusd
from ledger.usage import tokens_of_transcription
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import RoutingRequest

# Speech is some four tokens a second; Whisper writes at most 448 in half a minute.
SPOKEN_TOKENS_PER_S = 20
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
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
        _flag(form, name)
    if _flag(form, "use_beam_search"):
        raise request_checks.refused("use_beam_search")
    lasts = duration_of(sound)
    return InferenceRequest(
        kind=RequestKind.TRANSCRIPTION,
        path=path,
        model=model,
        stream=_flag(form, "stream"),
        wants_usage=True,
        wants_running_usage=True,
        prompts=1,
        n=1,
        max_tokens=-(-lasts.bound_ms * SPOKEN_TOKENS_PER_S // 1000),
        prompt_bytes=len((form.field("prompt") or "").encode()),
        features=NO_FEATURES,
        session=body.session,
        members={},
        form=form,
        extent=RequestUnits(
            longest=0.0,
            audio_ms=lasts.ms,
            audio_ms_bound=lasts.bound_ms,
            audio_known=lasts.known,
        ),
    )


def _sound(form: FormRequest) -> bytes:
    found = form.parts.get(FILE)
    if not found or not found[0].is_file:
        words = "`file` is required: the sound itself, sent as a file with its name."
        raise RequestError("bad_request", words, param=FILE)
    sound = form.file()
    if not sound:
        raise RequestError("bad_request", "`file` is empty.", param=FILE)
    return sound


def _flag(form: FormRequest, name: str) -> bool:
    value = form.field(name)
    if value is not None and value.lower() not in _FLAGS:
        raise RequestError("bad_request", f"`{name}` must be `true` or `false`.", param=name)
    return value is not None and _FLAGS[value.lower()]


def _estimate(request: RoutingRequest, output: int) -> TokenCounts:
    extent = request.extent or RequestUnits()
    audio, _ = sound_tokens(extent)
    return TokenCounts(audio_input=audio, output=output, audio_ms=extent.audio_ms)


def _most(request: RoutingRequest) -> TokenCounts:
    extent = request.extent or RequestUnits()
    _, audio = sound_tokens(extent)
    return TokenCounts(
        audio_input=audio, output=request.max_tokens or 0, audio_ms=extent.audio_ms_bound
    )


def _bound_pusd(price: Price, request: RoutingRequest, output_tokens: int) -> int:
    """The most that an API can charge: by tokens or by seconds."""
    extent, prompt = request.extent or RequestUnits(), request.prompt_tokens_bound
    return max(
        bound_pusd(price, prompt_tokens=prompt, output_tokens=output_tokens, audio=True),
        beside_bound_pusd(price, audio_ms=extent.audio_ms_bound, searches=0),
    )


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
    units=KindUnits(estimate=_estimate, most=_most, bound_pusd=_bound_pusd, exact=_exact),
    relay=lambda _asked, _own: TranscriptRelay(),
    read_answer=read_transcript,
    answer_has_text=True,
    generated=True,
    ranked=False,
    prefix_member=None,
    media_member="file",
    shorten=("file", "Send less sound; how long a WAV lasts is known exactly."),
    sampled=False,
    batched=False,
    usage_page=None,
    otel_operation="transcription",  # the conventions have no word for it
)
