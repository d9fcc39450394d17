"""What is known of a prompt's parts beside text, so that each target's bound can be found."""

from typing import NamedTuple


class PictureSize(NamedTuple):
    """A picture of a prompt in pixels, with the detail that its request asks for ("": none)."""

    width: int
    height: int
    detail: str = ""


class PromptMedia(NamedTuple):
    """Pictures of known size, `others` (pictures and films), and files that a target opens.

    `predicted`: tokens of the answer's forecast (`prediction`): those that are rejected are charged
    as output of each choice, beside what is said.
    `text_bound`: tokens of the prompt at most, without the data of `pictures`; `stated`: tokens
    that the configuration states for a picture.
    """

    text_bound: int
    pictures: tuple[PictureSize, ...]
    others: int
    stated: int
    files: int
    predicted: int = 0


def likely_tokens(pictures: tuple[PictureSize, ...], stated: int) -> int:
    """Return an estimate where no target is looked at: by the area, as most vendors count."""
    return sum(min(85 + size.width * size.height // 750, 1_600, stated) for size in pictures)
