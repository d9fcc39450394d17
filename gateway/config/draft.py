"""Settings out of a document, faulty or not: as much of it as can be read, and every fault.

What the schema refuses is taken out of the document (what it requires is filled with something
harmless), so that the rest becomes settings that the cross-checks look at in the same run. What
they find about a part that was taken out follows from its first fault and is not told.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gateway.config.document import Document
from gateway.config.faults import Fault, Place
from gateway.config.schema import Settings
from gateway.config.wording import fault_of, meant_by

_LISTS = ("policies", "budgets", "times")  # of sections; all others are of texts
ROUNDS = 8  # what is taken out may be required, its filling may need a part, and so on
_FILLINGS: Mapping[str, Any] = {
    "engine": {},
    "gpu": {"type": "CPU"},
    "type": "CPU",
    "name": "?",
    "scope": "global",
    "usd": 0,
    "target": "?",
    "percent": 0,
}


@dataclass(frozen=True, slots=True)
class Draft:
    """`settings` is None when nothing of the document can be read; `broken` was taken out."""

    settings: Settings | None
    faults: tuple[Fault, ...]
    broken: frozenset[Place] = frozenset()

    def follows(self, fault: Fault) -> bool:
        """Whether a cross-check's fault is about a part that is known to be broken."""
        return any(
            _within(fault.place, place)
            or _within(place, fault.place)
            or (fault.about is not None and _within(fault.about, place))
            for place in self.broken
        )


def draft_settings(document: Document) -> Draft:
    """What can be read of the document. Every fault has its place; lines are the caller's."""
    if document.value is None:
        return Draft(None, document.faults)
    value = copy.deepcopy(document.value)
    faults: list[Fault] = []
    broken: set[Place] = set()
    tried: set[tuple[Place, bool]] = set()
    settings: Settings | None = None
    for _ in range(ROUNDS):
        try:
            settings = Settings.model_validate(value)
            break
        except ValidationError as error:
            findings = error.errors(include_url=False)
        found = [(finding["type"], fault_of(finding, value)) for finding in findings]
        slips = [fault.place for kind, fault in found if kind == "extra_forbidden"]
        meant = {
            place
            for place in map(meant_by, slips)
            if place is not None and _value_at(value, place) is None
        }
        for kind, fault in found:
            known = any(_within(fault.place, place) for place in broken)
            if not known and fault.place not in meant:
                faults.append(fault)
            if kind != "extra_forbidden":  # an unknown key leaves its section as it is
                broken.add(fault.place)
            mended = _mend(value, fault.place, tried, missing=kind == "missing")
            if mended != fault.place:
                broken.add(mended)
        broken |= meant
    return Draft(settings, (*document.faults, *faults), frozenset(broken))


def _within(place: Place, whole: Place) -> bool:
    return place[: len(whole)] == whole


def _mend(
    document: dict[Any, Any], place: Place, tried: set[tuple[Place, bool]], *, missing: bool
) -> Place:
    """Remove the value at a place, or fill it where it is missing; returns the place.

    What was tried there before did not help, so its parent goes.
    """
    while (place, missing) in tried:
        place, missing = place[:-1], False
    tried.add((place, missing))
    here = _value_at(document, place[:-1])
    if not place:
        document.clear()
    elif isinstance(here, list):
        index = int(place[-1])  # replaced, so that the places of the other items stay
        here[index] = {} if len(place) == 2 and place[0] in _LISTS else ""
    elif isinstance(here, dict) and missing:
        here[place[-1]] = copy.deepcopy(_FILLINGS.get(str(place[-1])))
    elif isinstance(here, dict):
        for key in [key for key in here if str(key) == place[-1]]:
            del here[key]
    return place


def _value_at(document: Any, place: Place) -> Any:
    here = document
    for part in place:
        if isinstance(here, dict):
            here = next((value for key, value in here.items() if str(key) == str(part)), None)
        else:
            here = here[int(part)] if isinstance(here, list) else None
    return here
