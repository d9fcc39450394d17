"""Retirement of models: how clients are told, and when requests are refused.

Answers carry the headers "Deprecation" (RFC 9745), "Sunset" (RFC 8594) and, with a stated
successor, "Link". From the retirement date on, 0:00 UTC, a request is refused like one for a model
that does not exist, and the message names the successor. An alias may retire while its model stays.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from typing import NamedTuple
from urllib.parse import quote

from gateway.config.aliases import sections_behind
from gateway.config.schema_models import RetirementSection
from gateway.config.settings import Settings
from gateway.errors import RequestError
from gateway.http.connection import Header


class ModelRetirement(NamedTuple):
    """The retirement of a name that clients use. `retires_us` is Unix time in microseconds."""

    name: str
    retires: date
    retires_us: int
    successor: str | None
    headers: tuple[Header, ...]

    def is_over(self, at_us: int) -> bool:
        """Return whether the model is no longer served."""
        return at_us >= self.retires_us

    def check_served(self, at_us: int) -> None:
        """Raise `RequestError` 404 if the model has retired."""
        if self.is_over(at_us):
            instead = f" Use `{self.successor}`." if self.successor else ""
            words = f"The model `{self.name}` retired on {self.retires}.{instead}"
            raise RequestError("no_model", words, param="model")


def find_retirement(settings: Settings, asked: str) -> ModelRetirement | None:
    """Return the earliest retirement of the requested name and of what it is an alias of."""
    stated = [
        section.retirement
        for section in sections_behind(settings, asked)
        if section.retirement is not None
    ]
    if not stated:
        return None
    first = min(stated, key=lambda section: section.retires)
    return ModelRetirement(
        name=asked,
        retires=first.retires,
        retires_us=_instant_us(first.retires),
        successor=first.successor,
        headers=tuple(_headers(first)),
    )


def served_models(settings: Settings, names: Iterable[str], at_us: int) -> list[str]:
    """Return the names that have not retired, in their order."""
    found = {name: find_retirement(settings, name) for name in names}
    return [name for name, ends in found.items() if ends is None or not ends.is_over(at_us)]


def _headers(section: RetirementSection) -> Iterator[Header]:
    announced = section.announced or section.retires
    yield b"deprecation", b"@%d" % (_instant_us(announced) // 1_000_000)
    sunset = datetime.combine(section.retires, time(), UTC)
    yield b"sunset", format_datetime(sunset, usegmt=True).encode()
    if section.successor is not None:
        path = quote(section.successor, safe="/:")
        yield b"link", f'</v1/models/{path}>; rel="successor-version"'.encode()


def _instant_us(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp()) * 1_000_000
