"""Web citations of an answer as chat `annotations` of type `url_citation`. Does no I/O.

Chat has no form for citations of documents that the client sent.
"""

from collections.abc import Iterable
from typing import Any, Final

_WEB: Final = ("http://", "https://")
_OTHER: Final = "provider_specific_fields"  # LiteLLM's member for fields without a standard name


def url_annotations(citations: Any, start: int, end: int) -> list[dict[str, Any]]:
    """Return annotations of Anthropic's web citations for the text from `start` to `end`.

    Positions count characters of the answer. Other citations are left out.
    """
    found = []
    for citation in citations if isinstance(citations, list) else ():
        told = citation if isinstance(citation, dict) else {}
        address, title = told.get("url") or told.get("source"), told.get("title")
        if isinstance(address, str) and address.startswith(_WEB):
            place = {"start_index": start, "end_index": end}
            cited = {"url": address, "title": title if isinstance(title, str) else "", **place}
            found.append({"type": "url_citation", "url_citation": cited})
    return found


def add_annotations(said: Any, before: int = 0) -> None:
    """Add LiteLLM's separate citations to a message or a delta as `annotations`, in place.

    `before` is the number of characters in earlier deltas. A citation without the text that it
    supports gets the end of the text so far as its position.
    """
    other = said.get(_OTHER) if isinstance(said, dict) else None
    if not isinstance(other, dict) or said.get("annotations"):
        return
    text = said.get("content")
    text = text if isinstance(text, str) else ""
    found = []
    for citation in _flat([other.get("citations"), other.get("citation")]):
        supported = citation.get("supported_text")
        start = text.find(supported) if isinstance(supported, str) and supported else -1
        end = len(text) if start < 0 else start + len(str(supported))
        found += url_annotations([citation], before + (end if start < 0 else start), before + end)
    if found:
        said["annotations"] = found


def _flat(value: Any) -> Iterable[dict[str, Any]]:
    """Yield the objects in nested lists."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _flat(item)
