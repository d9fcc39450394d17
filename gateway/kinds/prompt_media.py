"""Parts of a prompt besides text, from which each target's bound is computed."""

from typing import Final, NamedTuple

_LARGE_TOKENS: Final = 1_600  # of pictures that a vendor scales down


class PictureSize(NamedTuple):
    """A picture of a prompt in pixels, with the requested detail ("" for none).

    `behind` has sizes of pictures in the same file, which a target may take instead.
    """

    width: int
    height: int
    detail: str = ""
    behind: tuple[tuple[int, int], ...] = ()

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Return width and height of each picture that a target may take."""
        return ((self.width, self.height), *self.behind)


class PromptMedia(NamedTuple):
    """Pictures of known size, `others` (pictures and films), and files that a target opens.

    `text_bound` is the maximum of prompt tokens without the pictures' data, and includes `sounds`,
    the maximum for sounds of known duration. `stated` is the configured number of tokens per
    picture. `predicted` is the tokens of the prediction: rejected ones are charged as output of
    each choice. `apart`: each file is read separately, like the inputs of a list.
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
    """Return an estimate for any target: by the area, as most vendors count.

    `unread` is the number of pictures of unknown size, which are mostly large.
    """
    most = min(_LARGE_TOKENS, stated)
    return unread * most + sum(
        min(85 + max(width * height for width, height in size.sizes) // 750, most)
        for size in pictures
    )
