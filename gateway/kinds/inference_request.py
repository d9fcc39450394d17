"""A client's request, decoded once, and the body from which it is read."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from gateway.http.body import Members, decode_members, encode_raw
from gateway.http.forms import FormRequest
from gateway.http.member_rules import STRICT, MemberRules
from gateway.kinds.content_findings import ContentFindings
from gateway.kinds.native_request import NativeRequest
from gateway.kinds.prompt_media import PictureSize
from gateway.kinds.template_arguments import TEMPLATE_ARGUMENTS
from router.prompts import RequestUnits
from router.request_kinds import KIND_TRAITS, RequestKind
from router.types import Feature, Residency

OLDER_LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"  # OpenAI's; most know the older


class InferenceRequest(msgspec.Struct, frozen=True):
    """One decoded request; `max_tokens` is per choice, `prompt_bytes` the size of the prompt."""

    kind: RequestKind
    path: str  # under the target's base URL: "/chat/completions"
    model: str
    stream: bool
    wants_usage: bool
    wants_running_usage: bool
    prompts: int  # `/v1/completions` takes a list of prompts; `n` x prompts is within `max_n`
    n: int
    max_tokens: int | None
    prompt_bytes: int
    features: frozenset[Feature]
    session: str | None
    members: Members
    # From another dialect: replaces `members` at targets that accept cache marks. The limit has the
    # target's own name, because the client used none of chat's names.
    translated: Members | None = None
    form: FormRequest | None = None  # in place of `members`, for requests with a file
    extent: RequestUnits | None = None  # of kinds without a conversation
    media_parts: int = 0  # upper bound of pictures and films, as texts may look like them
    has_sound: bool = False  # in the prompt, or requested as output
    text_prompt: bool = False  # no part of the prompt can be sound
    files: int = 0  # upper bound of files that the target opens, including undecoded sounds
    without_pictures: bool = False  # `modalities` do not include pictures
    sound_tokens: int = 0  # tokens of sounds in a conversation that are not in `prompt_bytes`
    sound_tokens_bound: int = 0
    pictures: tuple[PictureSize, ...] = ()  # of known size, among `media_parts`
    picture_bytes: int = 0  # part of `prompt_bytes`: data of pictures, of known size or not
    seldom_read_bytes: int = 0  # that few targets read in the prompt or write into it
    unread_pictures: int = 0  # pictures of unknown size whose data are in `picture_bytes`
    ignored: tuple[str, ...] = ()  # members that were sent and reach no target
    late_instructions: bool = False  # an instruction may follow the first message
    plain_turns: bool = False  # `messages` are texts with role and name, without marks
    template_arguments: bool = False  # in `members`, for targets that accept them
    residency: Residency = Residency.ANY  # of the stored answers in the prompt
    # Further features that a target needs, each with its place in the client's body.
    asked_by: Mapping[Feature, str] = msgspec.field(default_factory=dict)
    # The request without media of earlier turns, if no target can serve all of it.
    instead: "InferenceRequest | None" = None
    native: NativeRequest | None = None  # for targets with the client's dialect
    searches_limit: int = 0  # searches that the target may make; 0: no stated limit
    content: ContentFindings | None = None  # findings of detectors; None: not inspected
    # The request without its oldest turns, at least that many bytes, if no context holds it.
    shorten: "Callable[[int], InferenceRequest | None] | None" = None
    # Members stored with the answer, as the client wrote them, and masked like the rest. None: what
    # may be stored is unknown.
    kept: Members | None = msgspec.field(default_factory=dict)
    # Only the standard tier may serve it: another dialect's value, which is not in `members`.
    standard_tier: bool = False

    def with_ignored(self, names: tuple[str, ...]) -> "InferenceRequest":
        """Return the request with these names added to the ignored members."""
        native = self.native
        if native is not None:
            native = replace(native, ignored=(*names, *native.ignored))
        return replace(self, ignored=(*names, *self.ignored), native=native)

    def with_marks(self) -> "InferenceRequest":
        if not self.translated:
            return self
        return replace(self, members={**self.members, **self.translated})

    def without_template_arguments(self) -> "InferenceRequest":
        kept = {name: value for name, value in self.members.items() if name != TEMPLATE_ARGUMENTS}
        return replace(self, members=kept, template_arguments=False)

    def with_priority(self, priority: int) -> "InferenceRequest":
        """Return the request for an engine with priorities; a batch line has its own already."""
        if not priority or "priority" in self.members or not KIND_TRAITS[self.kind].decoded:
            return self
        return replace(self, members={**self.members, "priority": encode_raw(priority)})

    def with_older_limit(self) -> "InferenceRequest":
        """Return the request with the limit under both names, for targets that know the older."""
        if self.max_tokens is None or NEWER_LIMIT not in self.members:
            return self
        return replace(self, members={**self.members, OLDER_LIMIT: encode_raw(self.max_tokens)})


class IncomingBody(msgspec.Struct, frozen=True, gc=False):
    """A body as received; `max_n` is the maximum number of answers per request."""

    text: bytes
    content_type: str
    session: str | None
    max_n: int
    rules: MemberRules = STRICT


@dataclass(frozen=True, slots=True)
class BodyReader:
    """The reader of a path's body.

    The body's `content-type` must contain `media_type`; otherwise `fix` is the advice to the
    client. `read` raises `RequestError` with the invalid member.
    """

    read: Callable[[IncomingBody], InferenceRequest]
    media_type: str
    fix: str


def json_reader(
    read: Callable[[Members, IncomingBody], InferenceRequest], judged: Container[str] = ()
) -> BodyReader:
    """Return the reader of a path; `read` gets the members without the ignored ones.

    `judged` are ignored members that `read` checks by its own rules.
    """

    def read_json(body: IncomingBody) -> InferenceRequest:
        members = decode_members(body.text)
        ignored = body.rules.drop_denied(members, judged)
        asked = read(members, body)
        return replace(asked, ignored=ignored) if ignored else asked

    return BodyReader(read_json, "json", "Send the body as `application/json`.")
