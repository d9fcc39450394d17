"""Pictures made from pictures and a text, sent as a form: OpenAI's image edits.

Output is charged like pictures of a generation. Input pictures are charged in tokens, which some
prices list apart from text: such a price is only partly known here, and marked so. The hold for
input pictures exceeds what any of OpenAI's models counts.
"""

import re
from functools import partial
from typing import Final

from gateway.errors import RequestError
from gateway.http.forms import FLAGS, FormRequest, open_form
from gateway.kinds.image_generation import (
    UNITS,
    PictureRelay,
    check_pictures,
    picture_extent,
    read_picture_answer,
    write_events,
)
from gateway.kinds.inference_request import BodyReader, IncomingBody, InferenceRequest
from gateway.kinds.openapi_schemas import MODEL, TEXT, edit_schema
from gateway.kinds.picture_counts import refuse_other_counts, stated_form
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_members import plain_model
from ledger.unit_usage import tokens_of_pictures
from router.request_kinds import RequestKind
from router.types import Feature

IMAGES_MOST: Final = 16  # OpenAI's own limit (2026-11)
# Bytes of text that a picture counts as, in addition to its tokens (`picture_tokens`):
# gpt-image-1 reads at most 6,240 tokens more than its tiles with `input_fidelity: high`.
IMAGE_BYTES: Final = 8_192
_IMAGE, _MASK, _DONE = "image", "mask", "image_edit.completed"
_SENT: Final = frozenset((_IMAGE, f"{_IMAGE}[]", _MASK))
_FEATURES: Final = frozenset((Feature.IMAGES,))
# Pictures under other names, or at URLs, which a target may read instead.
_ELSEWHERE: Final = frozenset((
    "file", "file_id", "file_ids", "files", "image_file", "image_url", "image_urls", "images",
    "init_image", "input_image", "input_images", "input_reference", "mask_url", "reference_images",
))  # fmt: skip
_NEVER_READ: Final = frozenset((
    "background", "input_fidelity", "model", "moderation", "n", "output_compression",
    "output_format", "partial_images", "quality", "response_format", "size", "stream", "user",
    *_SENT,
))  # fmt: skip
_NUMBER: Final = re.compile("0|[1-9][0-9]?").fullmatch


def read_image_edit(body: IncomingBody) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the part and the fix."""
    form = open_form(body.text, body.content_type)
    model = plain_model(form.field("model"))
    sent = _count_pictures(form)
    if not form.field("prompt"):
        words = "`prompt` is required: the text that says what to change."
        raise RequestError("bad_request", words, param="prompt")
    texts = [name for name in form.parts if name not in _SENT and name != "prompt"]
    refuse_other_counts((name, (form.field(name) or "").encode()) for name in texts)
    n, stream = check_pictures(_number(form, "n", 1)), form.flag("stream")
    shown = _number(form, "partial_images", 0)
    return InferenceRequest(
        kind=RequestKind.IMAGE_EDIT,
        path="/images/edits",
        model=model,
        stream=stream,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=n,
        max_tokens=0,
        prompt_bytes=form.bytes_beside(_NEVER_READ) + sent * IMAGE_BYTES,
        features=_FEATURES,
        session=body.session,
        members={},
        form=form,
        media_parts=sent,
        ignored=form.ignored(),
        extent=picture_extent(
            n,
            *stated_form(form.parts, form.field("quality") or "", form.field("size") or ""),
            partial=shown,
            stream=stream,
        ),
        asked_by={Feature.IMAGES: _IMAGE},
    )


def _count_pictures(form: FormRequest) -> int:
    """Return how many pictures are sent, including the mask."""
    for name, group in form.parts.items():
        plain = name.removesuffix("[]").casefold()
        if "[" in plain:
            words = f"`{name}` is not taken: no field of an edit has members of its own."
            raise RequestError("unsupported", words, param=name)
        stray = any(part.is_file for part in group) is not (name in _SENT)
        if stray or plain in _ELSEWHERE or (plain in _SENT and name not in _SENT):
            words = f"`{name}` is not taken: pictures are sent as files, in `image` or `image[]`."
            raise RequestError("unsupported", words, param=name)
        if name in _SENT and any(part.start == part.end for part in group):
            raise RequestError("bad_request", f"`{name}` is empty.", param=name)
    single, several = (form.parts.get(name, ()) for name in (_IMAGE, f"{_IMAGE}[]"))
    images = len(single) + len(several)
    if not 1 <= images <= IMAGES_MOST or (single and several):
        words = (
            f"`image` is required: one picture, or 1 to {IMAGES_MOST} in `image[]`, sent as files."
        )
        raise RequestError("bad_request", words, param=_IMAGE)
    return images + len(form.parts.get(_MASK, ()))


def _number(form: FormRequest, name: str, default: int) -> int:
    value = form.field(name)
    if value is not None and not _NUMBER(value):
        words = f"`{name}` must be a whole number of one or two digits."
        raise RequestError("bad_request", words, param=name)
    return default if value is None else int(value)


def _body(_max_n: int) -> Schema:
    return edit_schema(
        {
            "model": MODEL,
            "prompt": {"type": "string", "minLength": 1},
            "n": {"type": "string", "pattern": "^(?:[1-9]|10)?$"},
            "quality": TEXT,
            "size": TEXT,
            "stream": {"enum": ["", *FLAGS]},
            "partial_images": {"type": "string", "pattern": "^[0-3]?$"},
        }
    )


SPEC: Final = RequestKindSpec(
    kind=RequestKind.IMAGE_EDIT,
    paths={
        "/v1/images/edits": KindPath(
            BodyReader(
                read_image_edit,
                "multipart/form-data",
                "Send the picture as `multipart/form-data`, with the parts `image`, `prompt` and "
                "`model`.",
            ),
            PathDescription(
                summary="Pictures made from a picture (several: `image[]`) and a text",
                body=_body,
                answer={"type": "object", "required": ["data"]},
                form=True,
                streamed=True,
                texts=False,
            ),
        )
    },
    usage=tokens_of_pictures,
    units=UNITS,
    relay=lambda asked, _own: PictureRelay(asked.n, _DONE),
    read_answer=read_picture_answer,
    as_events=partial(write_events, done=_DONE),
    answer_has_text=False,
    generated=True,
    ranked=False,
    prefix_member=None,
    media_member=_IMAGE,
    shorten=("prompt", "Send a shorter one, or fewer pictures."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page="/usage/images",
    otel_operation="image_edit",  # the conventions have no name for it
    catalog=CatalogFacts("image_edit", takes="image", gives="image"),
)
