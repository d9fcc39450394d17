"""The parts of a prompt beside text, from which each target's bound is computed."""

from typing import Final, NamedTuple

_LARGE_TOKENS: Final = 1_600  # of what a vendor scales down


class PictureSize(NamedTuple):
    """A picture of a prompt in pixels, with the detail that its request asks for ("": none).

    `behind`: sizes of pictures in the same file, which a target may take in its place.
    """

    width: int
    height: int
    detail: str = ""
    behind: tuple[tuple[int, int], ...] = ()

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Width and height of each picture that a target may take."""
        return ((self.width, self.height), *self.behind)


class PromptMedia(NamedTuple):
    """Pictures of known size, `others` (pictures and films), and files that a target opens.

    `predicted`: tokens of the answer's forecast (`prediction`): those that are rejected are charged
    as output of each choice, beside what is said.
    `text_bound`: tokens of the prompt at most, without the data of pictures; `stated`: tokens
    that the configuration states for a picture; `sounds`: tokens of sounds of known length at most,
    which `text_bound` has in it. `apart`: whether each file is read by itself, as a list's inputs
    are.
    """

    text_bound: int
    pictures: tuple[PictureSize, ...]
    others: int
    stated: int
    files: int
    predicted: int = 0
    sounds: int = 0
    apart: bool = False


def likely_tokens(pictures: tuple[PictureSize, ...], unread: int, stated: int) -> int:
    """Return an estimate where no target is looked at: by the area, as most vendors count.

    `unread`: pictures of unknown size, which are most times large.
    """
    most = min(_LARGE_TOKENS, stated)
    return unread * most + sum(
        min(85 + max(width * height for width, height in size.sizes) // 750, most)
        for size in pictures
    )
