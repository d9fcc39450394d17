"""Pictures made from a text, in one answer or in a stream with partial pictures.

Prices are by picture and form (quality and size), or by tokens of text and pictures. Usage in the
answer counts; before it, the dearest case is assumed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from backends.answers import PICTURE_FORM, AnswerUsage, read_pictures, with_pictures
from backends.chunk_choices import NULL
from backends.usage_bytes import decode_usage, usage_bytes
from backends.usage_places import sum_choices
from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import FLAG, MODEL, body_schema
from gateway.kinds.picture_counts import refuse_other_counts, stated_form
from gateway.kinds.prompt_bytes import prompt_bytes, rewritten_tokens
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    KindUnits,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_members import (
    NO_FEATURES,
    is_streamed,
    model_of,
    refuse_others,
    refuse_store,
)
from gateway.kinds.typed_events import TypedEvent, TypedRelay
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, bound_pusd, units_bound_pusd
from ledger.prices.picture_forms import (
    PictureForm,
    charged_form,
    form_of,
    pixels_of,
    reachable_forms,
)
from ledger.prices.rates import ReachableMedia
from ledger.unit_usage import tokens_of_pictures
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import RoutingRequest

PICTURES_MOST: Final = 10  # OpenAI's own limit (2026-11)
PARTIAL_MOST, PARTIAL_TOKENS = 3, 256  # per picture; OpenAI counts 100 tokens for one
# Tokens of a picture by quality, estimate and maximum: OpenAI's prices of a picture over those of
# a token, gpt-image-1 to gpt-image-2.5, with a margin (LiteLLM's map of 2026-10). Up to 1.6
# megapixels no picture has more than 7,033, up to 8.3 none more than 13,367.
_TOKENS: Final = {"low": (400, 1_024), "medium": (1_600, 4_096)}
USUAL_TOKENS, SMALL_TOKENS, LARGE_TOKENS = 4_200, 8_192, 16_384
SMALL_PIXELS: Final = 1_600_000
TEXT_TOKENS: Final = 1_024  # for thoughts and text besides the pictures
_END: Final = "completed"
_DONE: Final = f"image_generation.{_END}"
_GROWTH: Final = 4 / 3  # pictures of one answer differ by less in their tokens
_MADE: Final = ReachableMedia(audio_input=False, audio_output=False)
# Vendors' members for an input picture: each is charged at a price that no hold covers.
_PICTURES_IN: Final = frozenset((
    "image", "image_url", "image_urls", "images", "init_image", "input_image", "input_images",
    "input_reference", "mask", "mask_url", "reference_images",
))  # fmt: skip


def read_image_generation(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the parameter and the fix."""
    refuse_other_spellings(members)
    model, text = model_of(members), decode_member(members, "prompt", str)
    if not text:
        words = "`prompt` is required: the text that says what to show."
        raise RequestError("bad_request", words, param="prompt")
    refuse_others(members, "prompt")
    refuse_store(members)
    for name in _PICTURES_IN:
        if name in members and bytes(members[name]) not in (b"null", b"[]", b'""'):
            words = f"`{name}` is not taken: pictures are made from texts alone here."
            raise RequestError("unsupported", words, param=name)
    refuse_other_counts((name, bytes(members[name])) for name in members if name != "prompt")
    n = check_pictures(decode_member(members, "n", int, 1))
    stream = is_streamed(members)
    return InferenceRequest(
        kind=RequestKind.IMAGE_GENERATION,
        path="/images/generations",
        model=model,
        stream=stream,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=n,
        max_tokens=0,
        prompt_bytes=prompt_bytes(members),
        seldom_read_bytes=rewritten_tokens(members),
        features=NO_FEATURES,
        session=body.session,
        members=members,
        extent=picture_extent(
            n,
            *stated_form(
                members,
                decode_member(members, "quality", str, ""),
                decode_member(members, "size", str, ""),
            ),
            partial=decode_member(members, "partial_images", int, 0),
            stream=stream,
        ),
    )


def check_pictures(n: int) -> int:
    """Return the number of requested pictures. Raises `RequestError` if it is out of range."""
    if not 1 <= n <= PICTURES_MOST:
        raise RequestError("bad_request", f"`n` must be between 1 and {PICTURES_MOST}.", param="n")
    return n


def picture_extent(n: int, quality: str, size: str, *, partial: int, stream: bool) -> RequestUnits:
    """Return the units of `n` pictures of a form.

    A stream may also have partial pictures, at most `PARTIAL_MOST` each. Raises `RequestError` if
    `partial` is out of range.
    """
    form = form_of(quality, size)
    if not 0 <= partial <= PARTIAL_MOST:
        words = f"`partial_images` must be between 0 and {PARTIAL_MOST}."
        raise RequestError("bad_request", words, param="partial_images")
    pixels = pixels_of(form.size)
    largest = SMALL_TOKENS if 0 < pixels <= SMALL_PIXELS else LARGE_TOKENS
    usual, most = _TOKENS.get(form.quality, (USUAL_TOKENS, largest))
    shown = PARTIAL_MOST * PARTIAL_TOKENS if stream else 0
    return RequestUnits(
        longest=0.0,
        pictures=n,
        picture_form="|".join(form),
        output_tokens=n * usual,
        output_tokens_bound=n * (most + shown) + TEXT_TOKENS,
    )


def _form(request: RoutingRequest) -> PictureForm:
    quality, _, size = (request.extent or RequestUnits()).picture_form.partition("|")
    return PictureForm(quality, size)


def _tier(terms: PriceTerms, request: RoutingRequest, usage: Mapping[str, Any]) -> str:
    """Return the form in the answer's usage, completed by the requested form."""
    asked = _form(request)
    size, quality = (usage.get(name) for name in PICTURE_FORM)
    told = form_of(
        quality if isinstance(quality, str) else "", size if isinstance(size, str) else ""
    )
    form = PictureForm(told.quality or asked.quality, told.size or asked.size)
    return charged_form(terms, form)


def _estimate(request: RoutingRequest, _output: int) -> TokenCounts:
    extent = request.extent or RequestUnits()
    made = extent.output_tokens
    return TokenCounts(
        input=request.prompt_tokens, output=made, image_output=made, pictures=extent.pictures
    )


def _bound_of(request: RoutingRequest) -> TokenCounts:
    extent = request.extent or RequestUnits()
    made = extent.output_tokens_bound
    return TokenCounts(
        input=request.prompt_tokens_bound, output=made, image_output=made, pictures=extent.pictures
    )


def _bound_pusd(price: Price, request: RoutingRequest, _output_tokens: int) -> int:
    """Return the maximum charge: tokens of the text, with tokens or prices of the pictures.

    A picture may be charged in any form that the request leaves open.
    """
    extent, prompt = request.extent or RequestUnits(), request.prompt_tokens_bound
    read, whole = (
        bound_pusd(price, prompt_tokens=prompt, output_tokens=output, media=_MADE)
        for output in (TEXT_TOKENS, extent.output_tokens_bound)
    )
    forms = reachable_forms(price.terms, _form(request))
    made = units_bound_pusd(price, forms, pictures=extent.pictures)
    return max(whole, read + made)


class PictureRelay(TypedRelay):
    """A relay of streamed pictures; its usage has their number and form.

    OpenAI ends each picture with an event, which may have that picture's usage. Volcengine and
    MiniMax send `partial_succeeded` or `partial_failed` for each, and one end for all.
    """

    __slots__ = ("_figures", "_form", "_lost", "_made", "_one_failed", "_one_made", "_parts")

    def __init__(self, pictures: int, done: str = _DONE) -> None:
        super().__init__(done, choices=pictures)
        self._form: dict[str, str] = {}
        self._figures: list[bytes] = []  # of single pictures
        self._made = self._lost = self._parts = 0
        part = done.removesuffix(_END) + "partial_"
        self._one_made, self._one_failed = part + "succeeded", part + "failed"

    @property
    def usage(self) -> dict[str, Any] | None:
        if not self._made:
            return None
        told = with_pictures(sum_pictures(self._figures) or super().usage, self._made)
        return {**told, **self._form}

    def _tells_failure(self, event: TypedEvent) -> bool:
        """Return whether the answer failed, which takes the failure of all pictures."""
        if event.type != self._one_failed:
            return super()._tells_failure(event)
        self._lost += 1
        return self._lost >= self._choices

    def _observe_typed(self, event: TypedEvent) -> None:
        if event.type == self._one_failed:
            return
        if event.type == self._one_made:
            self._made, self._parts = self._made + 1, self._parts + 1
            self._told.end(is_whole=False)
        elif event.type == self._done:
            if self._parts and event.b64_json is NULL and event.url is NULL:
                self._finished.update(range(self._choices))  # the end of all pictures
            else:
                self._made += 1
                if (raw := usage_bytes(event.usage)) is None:
                    self._told.pass_words()
                else:
                    self._figures.append(raw)
        super()._observe_typed(event)
        self.shown = True
        for name in PICTURE_FORM:
            if isinstance(said := getattr(event, name), str):
                self._form[name] = said


def sum_pictures(figures: Sequence[bytes]) -> dict[str, Any] | None:
    """Return the summed usage of single pictures; `None` where one figure covers all.

    Running totals grow by about a picture each. Other figures are per picture, and are added.
    """
    told = [usage for raw in figures if (usage := decode_usage(raw)) is not None]
    if len(told) < 2:
        return None
    first, last = (usage.get("output_tokens") for usage in (told[0], told[-1]))
    if not (type(first) is int and type(last) is int):
        return None
    return None if _GROWTH * last >= len(told) * first else sum_choices(told)


def read_picture_answer(body: bytes, _media: str) -> AnswerUsage:
    """Return the usage of an answer in one piece."""
    return read_pictures(body)


UNITS: Final = KindUnits(
    estimate=_estimate,
    most=_bound_of,
    bound_pusd=_bound_pusd,
    exact=lambda _request: False,
    tier=_tier,
)


def write_events(body: bytes, done: str = _DONE) -> bytes:
    """Return an answer in one piece as stream events, one per picture.

    Some targets ignore the request for a stream, and the client waits for events. The last event
    has the usage, as in a native stream.
    """
    answer = msgspec.json.decode(body, type=dict[str, Any])
    pictures = answer.pop("data")
    usage, created = answer.pop("usage", None), answer.pop("created", 0)
    events = []
    for place, picture in enumerate(pictures):
        event = {"type": done, "created_at": created, **answer, **picture}
        if usage is not None and place == len(pictures) - 1:
            event["usage"] = usage
        events.append(b"event: " + done.encode() + b"\ndata: " + encode(event) + b"\n\n")
    return b"".join(events)


def _body(_max_n: int) -> Schema:
    word: Schema = {"type": ["string", "null"]}
    members = {
        "model": MODEL,
        "prompt": {"type": "string", "minLength": 1},
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": PICTURES_MOST},
        "quality": word,
        "size": word,
        "stream": FLAG,
        "partial_images": {"type": ["integer", "null"], "minimum": 0, "maximum": PARTIAL_MOST},
    }
    return body_schema("prompt", members)


SPEC: Final = RequestKindSpec(
    kind=RequestKind.IMAGE_GENERATION,
    paths={
        "/v1/images/generations": KindPath(
            json_reader(read_image_generation),
            PathDescription(
                summary="Pictures made from a text",
                body=_body,
                answer={"type": "object", "required": ["data"]},
                form=False,
                streamed=True,
                texts=False,
            ),
        )
    },
    usage=tokens_of_pictures,
    units=UNITS,
    relay=lambda asked, _own: PictureRelay(asked.n),
    read_answer=read_picture_answer,
    as_events=write_events,
    answer_has_text=False,
    generated=True,
    ranked=False,
    prefix_member=None,
    media_member="prompt",
    shorten=("prompt", "Send a shorter one."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page="/usage/images",
    otel_operation="image_generation",  # the conventions have no name for it
    catalog=CatalogFacts("image_generation", gives="image", price="picture_pusd"),
)
