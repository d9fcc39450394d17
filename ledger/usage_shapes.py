"""A cache of the places of counts by the shape of usage: each provider sends few shapes.

A shape is the set of member names, one level deep. Usage that is deeper, unusual or large has no
shape and is walked each time, so that a target that invents names cannot fill the memory.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from ledger.usage_members import MEMBERS, OBJECTS, UsageCount, is_known

ORDER = {
    path: place
    for place, (path, meaning) in enumerate(MEMBERS.items())
    if meaning is not UsageCount.INCLUDED
}
OUTER_OBJECTS = tuple(path for path in OBJECTS if "." not in path and "[" not in path)
_OBJECT_NAMES = frozenset(OUTER_OBJECTS)
MOST_NAMES, LONGEST_NAME = 40, 100  # of a shape that is remembered

UsageShape = tuple[str | tuple[str, ...], ...]


def usage_shape(usage: Mapping[str, object]) -> UsageShape | None:
    """Return the shape of the usage, or `None` if it is deeper, unusual or large."""
    shape: list[str | tuple[str, ...]] = []
    names = len(usage)
    for name, value in usage.items():
        if len(name) > LONGEST_NAME:
            return None
        if type(value) is dict:
            names += len(value)
            if names > MOST_NAMES:
                return None
            for inner_name, inner in value.items():
                if type(inner) is dict or type(inner) is list or len(inner_name) > LONGEST_NAME:
                    return None
            shape.append((name, *value))
        elif type(value) is list or (name in _OBJECT_NAMES and value is not None):
            return None
        else:
            shape.append(name)
    return tuple(shape) if names <= MOST_NAMES else None


def counts_by_shape(
    usage: Mapping[str, object], shape: UsageShape
) -> Iterator[tuple[UsageCount, str, Any]]:
    """Yield only the members that are counts, in the table's order."""
    for meaning, outer, name in _places(shape):
        fields: Any = usage if outer is None else usage[outer]
        yield meaning, name, fields[name]


@lru_cache(maxsize=256)
def unknown_places(shape: UsageShape) -> tuple[tuple[str | None, str], ...]:
    """Return the places of members that the table does not know, as (outer, name) pairs."""
    return tuple(
        (outer, name)
        for outer, name in _paths(shape)
        if not is_known(name if outer is None else f"{outer}.{name}")
    )


@lru_cache(maxsize=256)
def _places(shape: UsageShape) -> tuple[tuple[UsageCount, str | None, str], ...]:
    found = []
    for outer, name in _paths(shape):
        path = name if outer is None else f"{outer}.{name}"
        if path in ORDER:
            found.append((ORDER[path], MEMBERS[path], outer, name))
    found.sort(key=itemgetter(0))
    return tuple((meaning, outer, name) for _, meaning, outer, name in found)


def _paths(shape: UsageShape) -> list[tuple[str | None, str]]:
    paths: list[tuple[str | None, str]] = []
    for part in shape:
        paths += [(None, part)] if isinstance(part, str) else [(part[0], name) for name in part[1:]]
    return paths
