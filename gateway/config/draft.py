"""Settings from a possibly faulty document: the readable part, and every fault.

Parts that the schema rejects are removed, and missing required values are filled with placeholders.
The rest becomes settings for the cross-checks of the same run. Their faults about removed parts are
consequences and are not reported.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gateway.config.document import ConfigDocument
from gateway.config.faults import ConfigFault, Place
from gateway.config.schema import Settings
from gateway.config.wording import fault_of, suggested_key

_LISTS = ("policies", "budgets", "times", "then")  # lists of sections; all other lists contain text
FAULTS_MOST = 200  # maximum faults; beyond it the rest is not read
ROUNDS = 8  # a removed part may be required, its placeholder may need a part, and so on
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
class SettingsDraft:
    """Readable part; `settings` is None if nothing is readable, `broken` are removed parts."""

    settings: Settings | None
    faults: tuple[ConfigFault, ...]
    broken: frozenset[Place] = frozenset()

    def is_consequence(self, fault: ConfigFault) -> bool:
        """Return whether a cross-check's fault is about a part that was removed."""
        about = fault.about
        return (
            _is_within(fault.place, self.broken)
            or (about is not None and _is_within(about, self.broken))
            or any(place[: len(fault.place)] == fault.place for place in self.broken)
        )


def draft_settings(document: ConfigDocument) -> SettingsDraft:
    """Return the readable part of a document. Faults have places; the caller adds lines."""
    if document.value is None:
        return SettingsDraft(None, document.faults)
    value = copy.deepcopy(document.value)
    faults: list[ConfigFault] = []
    broken: set[Place] = set()
    tried: set[tuple[Place, bool]] = set()
    settings: Settings | None = None
    for _ in range(ROUNDS):
        try:
            settings = Settings.model_validate(value)
            break
        except ValidationError as error:
            findings = error.errors(include_url=False)
        if len(findings) > FAULTS_MOST:
            faults += [fault_of(finding, value) for finding in findings[:FAULTS_MOST]]
            faults.append(ConfigFault((), f"and {len(findings) - FAULTS_MOST} more faults"))
            break
        found = [(finding["type"], fault_of(finding, value)) for finding in findings]
        slips = [fault.place for kind, fault in found if kind == "extra_forbidden"]
        meant = {
            place
            for place in map(suggested_key, slips)
            if place is not None and _value_at(value, place) is None
        }
        for kind, fault in found:
            if not _is_within(fault.place, broken) and fault.place not in meant:
                faults.append(fault)
            if kind != "extra_forbidden":  # an unknown key does not affect its section
                broken.add(fault.place)
            mended = _mend(value, fault.place, tried, missing=kind == "missing")
            if mended != fault.place:
                broken.add(mended)
        broken |= meant
    return SettingsDraft(settings, (*document.faults, *faults), frozenset(broken))


def _is_within(place: Place, wholes: set[Place] | frozenset[Place]) -> bool:
    """Return whether a place lies in one of `wholes`, by a lookup of its prefixes."""
    return any(place[:length] in wholes for length in range(len(place) + 1))


def _mend(
    document: dict[Any, Any], place: Place, tried: set[tuple[Place, bool]], *, missing: bool
) -> Place:
    """Remove the value at a place, or fill it if missing; return the place.

    If that was tried before and did not help, its parent is removed.
    """
    while (place, missing) in tried:
        place, missing = place[:-1], False
    tried.add((place, missing))
    here = _value_at(document, place[:-1])
    if not place:
        document.clear()
    elif isinstance(here, list):
        index = int(place[-1])  # replaced, so that the other items keep their places
        here[index] = {} if place[-2] in _LISTS else ""
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
