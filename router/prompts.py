"""The facts of a prompt beside its tokens: the extent of other kinds, its beginning."""

from typing import NamedTuple

from router.value import value


@value(frozen=True, slots=True)
class RequestUnits:
    """The size of a request that is no conversation: an estimate and a maximum.

    `longest` is the share of the whole in its longest input: an engine reads inputs one by one,
    so each has the context to itself (0: it cuts them itself). `audio_known`: the file tells its
    length; otherwise it was guessed from its bytes. `characters` are spoken, `pictures` made, in
    the form that was asked for (`QUALITY|SIZE`); `output_tokens` are what sound or pictures have.
    """

    longest: float = 1.0
    searches: int = 0
    searches_bound: int = 0
    audio_ms: int = 0
    audio_ms_bound: int = 0
    audio_known: bool = False
    characters: int = 0
    pictures: int = 0
    picture_form: str = ""
    output_tokens: int = 0
    output_tokens_bound: int = 0


class PromptPrefix(NamedTuple):
    """The beginning of a prompt: checksums of all bytes up to cuts that are alike for all prompts.

    Of its `whole` bytes `ahead` lie before the first place. Without marks nothing is known.
    `kept_s`: for how many seconds the request asks its provider to keep it; 0: it marks nothing.
    """

    marks: tuple[int, ...] = ()
    ahead: int = 0
    whole: int = 1
    kept_s: int = 0
