"""Facts of a prompt other than its tokens: units of other kinds, and its prefix."""

from typing import NamedTuple

from router.value import value


@value(frozen=True, slots=True)
class RequestUnits:
    """Size of a request that is no conversation: an estimate and a maximum of each unit.

    `longest` is the share of the longest input: an engine reads inputs one by one, each with the
    whole context to itself (0: the engine splits inputs itself). `audio_known` is true if the file
    states its length; otherwise it is estimated from the bytes. `characters` are to be spoken,
    `pictures` to be made in `picture_form` (`QUALITY|SIZE`). `output_tokens` are those of sound or
    pictures.
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
    """Beginning of a prompt: checksums of all bytes up to cuts at fixed places.

    The cuts are the same for all prompts. Of its `whole` bytes, `ahead` lie before the first cut.
    Without `marks` no prefix is known. `kept_s` is how long the request asks its provider to cache
    it, in seconds; 0 if it does not.
    """

    marks: tuple[int, ...] = ()
    ahead: int = 0
    whole: int = 1
    kept_s: int = 0
