"""Other addresses of served paths: Azure's deployments, and paths without `/v1`.

Azure clients put the deployment (here the model) into the path and the key into `api-key`. Clients
whose base URL lacks `/v1` send the paths without it. `canonical_path` returns the served path;
nothing else in the gateway knows the other addresses.
"""

import re
from typing import Final, NamedTuple

import msgspec

from gateway.http.body import decode_members, encode, encode_raw
from gateway.http.forms import open_form, with_model_field
from gateway.kinds import KIND_PATHS
from gateway.request.dialects.translated_paths import SPOKEN

DEPLOYMENT: Final = "breakeven.deployment"  # in the request's scope: the model of its path
_VERSION: Final = "/v1"
# First path segments below `/v1` that clients request without it.
_BARE: Final = frozenset((
    "audio", "batches", "chat", "completions", "conversations", "embeddings", "files", "images",
    "messages", "models", "moderations", "responses",
))  # fmt: skip
_AZURE: Final = "/openai"
# Longest first: `/completions` is also the end of `/chat/completions`.
_SERVED: Final = sorted(
    (path.removeprefix(_VERSION) for path in (*KIND_PATHS, *SPOKEN) if path.startswith(_VERSION)),
    key=len,
    reverse=True,
)
_DEPLOYMENTS: Final = re.compile(r"(?:/openai/deployments|(?:/v1)?/engines)/([^/].*)")
_OBJECT: Final = re.compile(rb"[ \t\r\n]*\{[ \t\r\n]*(\}?)")
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class ClientPath(NamedTuple):
    """A served path, and the model that the address names; None where it names none."""

    path: str
    model: str | None = None


def canonical_path(path: str) -> ClientPath | None:
    """Return the served path of an alternative address; None for any other path."""
    deployment = _DEPLOYMENTS.fullmatch(path)
    if deployment is not None:
        return _of_deployment(deployment[1])
    rest = path.removeprefix(_AZURE)
    if rest != path and rest.startswith(_VERSION + "/"):
        return ClientPath(rest)
    first = rest[1:].partition("/")[0]
    return ClientPath(_VERSION + rest) if rest[:1] == "/" and first in _BARE else None


def _of_deployment(named: str) -> ClientPath | None:
    """Return the path behind a deployment's name, which may contain slashes, as models do."""
    for path in _SERVED:
        model = named.removesuffix(path)
        if model and model != named:
            return ClientPath(_VERSION + path, model)
    return None


def with_model(text: bytes, media: str | None, model: str) -> bytes:
    """Return the body with the model of its address in place of its own.

    `media` is its content type, None for JSON. Raises `RequestError` for a malformed body.
    """
    if media is not None:
        return with_model_field(open_form(text, media), model)
    try:
        members = _decode_raw(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text  # the reader of the body reports the error
    named, asked = members.get("model"), encode_raw(model)
    if named is None:
        opening = _OBJECT.match(text)
        if opening is None:
            return text
        comma = b"" if opening[1] else b","
        return b'{"model":' + bytes(asked) + comma + text[opening.end() - len(opening[1]) :]
    if bytes(named) == bytes(asked):
        return text
    decode_members(text)  # raises for a repeated name: one of the two would be lost here
    return encode({**members, "model": asked})
