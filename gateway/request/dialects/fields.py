"""Checked reading of nested members: a wrong type is a 400 that names its place.

Places are written as in code: `messages[2].content[0].source`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.errors import RequestError, invalid_error
from gateway.http.body import Members, decode_member

PAIRS, KEY_LIMIT, VALUE_LIMIT = 16, 64, 512  # as OpenAI documents `metadata`
OF_CHAT = "is a member of chat completions and says nothing here. Leave it out."


def missing_error(place: str) -> RequestError:
    return RequestError("bad_request", f"`{place}` is required.", param=place)


def unsupported(place: str, why: str) -> RequestError:
    """Return the error for content that can neither be kept nor left out without a change."""
    return RequestError("unsupported", f"`{place}`: {why}", param=place)


def text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise invalid_error(place, "must be a string.")
    return value


def optional_text(value: Any, place: str) -> str | None:
    return None if value is None else text(value, place)


def type_of(value: Mapping[str, Any], place: str) -> str | None:
    """Return the `type` of an item, block or tool, by which the tables are searched."""
    return optional_text(value.get("type"), f"{place}.type")


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise invalid_error(place, "must be an object.")
    return value


def iterate_objects(value: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a list, each with its place."""
    if not isinstance(value, list):
        raise invalid_error(place, "must be a list.")
    for index, item in enumerate(value):
        where = f"{place}[{index}]"
        yield where, mapping(item, where)


def refuse_members(members: Members, reasons: Mapping[str, str]) -> None:
    """Raise `RequestError` 400 for the first of these members that is set."""
    for name, why in reasons.items():
        if name in members and bytes(members[name]) not in (b"null", b"[]", b"{}", b"false"):
            raise unsupported(name, why)


def decode_whole_member(members: Members, name: str) -> Any:
    """Return a member fully decoded; `None` if it is missing."""
    return decode_member(members, name, Any)


def changed_metadata(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the `metadata` of a change, which must have it: null empties it. Raises as below."""
    if "metadata" not in body:
        raise missing_error("metadata")
    return metadata_of(body)


def metadata_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return `metadata`, empty if it is missing. Raises `RequestError` 400 if malformed."""
    given = body.get("metadata")
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise invalid_error("metadata", "must be an object of strings.")
    if len(given) > PAIRS:
        raise invalid_error("metadata", f"has more than {PAIRS} members.")
    for name, value in given.items():
        if len(name) > KEY_LIMIT or len(value) > VALUE_LIMIT:
            most = f"{KEY_LIMIT} characters, or a value of more than {VALUE_LIMIT}."
            raise invalid_error("metadata", f"has a name of more than {most}")
    return given
