"""Conversion of audio form requests to LiteLLM's arguments."""

import re
from typing import Any, Final

from backends.base import Call
from backends.errors import RequestDeclined, RequestUnsendable

SOUND_PATHS: Final = frozenset({"/audio/transcriptions"})
_BOUNDARY: Final = re.compile(r'boundary="?([^";]+)"?')
_NAME: Final = re.compile(rb'[; ]name="([^"]*)"')
_FILE_NAME: Final = re.compile(rb'filename="([^"]*)"')
_TYPE: Final = re.compile(rb"(?im)^content-type: *([^\r\n]+)")
_AS_JSON: Final = ("json", "verbose_json")


def form_members(call: Call) -> dict[str, Any]:
    """Return the members of a call's form; LiteLLM answers such calls whole and as JSON.

    Raises `RequestUnsendable` if the body is not a form.
    """
    found = _BOUNDARY.search(call.content_type or "")
    if found is None:
        raise RequestUnsendable("the request is not a form")
    members: dict[str, Any] = {}
    for part in call.body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name, content = _NAME.search(head), content.removesuffix(b"\r\n")
        if name is None:
            continue
        file, kind = _FILE_NAME.search(head), _TYPE.search(head)
        value: Any = content.decode("utf-8", "replace")
        if file is not None:
            media = kind[1].decode("latin-1") if kind else "application/octet-stream"
            value = (file[1].decode("utf-8", "replace"), content, media)
        members[name[1].decode("utf-8", "replace")] = value
    if "model" not in members:
        raise RequestUnsendable("the request has no model")
    if call.stream or members.get("response_format", "json") not in _AS_JSON:
        raise RequestDeclined("the adapter returns only whole JSON responses", status=400)
    return members
