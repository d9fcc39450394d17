"""Faults of a configuration: place, text and severity.

An error keeps `serve` from starting; a warning works, but may surprise. A place is a path in the
document (`("policies", 0, "slo")`), shown as `policies[0].slo` with its line.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Place = tuple[str | int, ...]
Severity = Literal["error", "warning"]

SHORT = 4  # characters; in such a short word one typo is a large part
SHOWN_NAMES = 10  # maximum names shown; of longer lists only the nearest


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One fault. `about` is another place that it depends on, such as a model's pool.

    `upon`: settings that the check compared with. If one of them is faulty itself, this fault may
    be a consequence and is left out.
    """

    place: Place
    message: str
    severity: Severity = "error"
    line: int | None = None
    about: Place | None = None
    upon: tuple[Place, ...] = ()

    @property
    def path(self) -> str:
        return render(self.place)

    def text(self, file: str) -> str:
        """Return the fault as `file:12: models.a.targets: text`, like a compiler's message."""
        return text_of(self.document(), file)

    def document(self) -> dict[str, str | int | None]:
        return {
            "path": self.path,
            "line": self.line,
            "message": self.message,
            "severity": self.severity,
        }


def text_of(told: Mapping[str, str | int | None], file: str) -> str:
    """Return a fault's document as one line, like a compiler's message."""
    where = file if told["line"] is None else f"{file}:{told['line']}"
    kind = "warning: " if told["severity"] == "warning" else ""
    path = f"{told['path']}: " if told["path"] else ""
    return f"{where}: {kind}{path}{told['message']}"


def count_of(severities: Sequence[str]) -> str:
    """Return the counts as text: `2 errors, 1 warning`."""
    errors = severities.count("error")
    return ", ".join(
        f"{number} {word}{'' if number == 1 else 's'}"
        for number, word in ((errors, "error"), (len(severities) - errors, "warning"))
        if number
    )


def warning(place: Place, message: str, *, upon: tuple[Place, ...] = ()) -> ConfigFault:
    return ConfigFault(place, message, "warning", upon=upon)


def independent_faults(
    faults: Sequence[ConfigFault], broken: Collection[Place]
) -> list[ConfigFault]:
    """Return the faults without those that only follow from others.

    `broken` are unreadable parts of the document. An error is dropped only for these, or for errors
    that depend on nothing, so that two errors cannot hide each other.
    """
    causes = {fault.place for fault in faults if fault.severity == "error" and not fault.upon}
    causes |= set(broken)
    errors = {fault.place for fault in faults if fault.severity == "error"} | causes
    return [
        fault
        for fault in faults
        if not any(_overlap(place, causes if fault.severity == "error" else errors)
                   for place in fault.upon)
    ]  # fmt: skip


def _overlap(place: Place, others: Collection[Place]) -> bool:
    """Return whether one of the others is this place, contains it or lies within it."""
    if any(place[:length] in others for length in range(len(place) + 1)):
        return True
    return any(other[: len(place)] == place for other in others)


def render(place: Place) -> str:
    """Return a place as text: `policies[0].slo.ttft_ms`."""
    path = ""
    for part in place:
        plain = isinstance(part, str) and part.isprintable()
        path += f"[{part!r}]" if part == "" or not plain else f".{part}"
    return path.removeprefix(".")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name; empty if none is near."""
    names = sorted(set(known) - {word})
    lower = {name.lower(): name for name in names}
    wanted = word.lower()
    cutoff = 0.6 if len(word) > SHORT else 0.5
    near = [name for name in lower if len(word) > 2 and name.startswith(wanted)]
    near = near or difflib.get_close_matches(wanted, lower, n=2, cutoff=cutoff)
    if near:
        return f"; did you mean {' or '.join(f'`{lower[name]}`' for name in near[:3])}?"
    if names and len(names) <= SHOWN_NAMES:
        return f"; there {'is' if len(names) == 1 else 'are'} {_list_names(names)}"
    return ""


def _list_names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
