"""Check of query texts for NUL, which PostgreSQL cannot store.

Such a text can match nothing. It is refused as an error of the request, before any query; a
database error would ask the client to retry a request that can never succeed.
"""

from typing import Annotated, Any

from fastapi import Query

from gateway.errors import RequestError

PATTERN: dict[str, Any] = {"pattern": r"^[^\x00]*$"}  # the same, in OpenAPI
Text = Annotated[str | None, Query(json_schema_extra=PATTERN)]


def check_storable(name: str, text: str | None) -> str | None:
    """Return the text of the parameter `name`. Raises `RequestError` 400 if it has a NUL."""
    if text is not None and "\0" in text:
        message = f"`{name}` has a zero character. Leave it out."
        raise RequestError("bad_request", message, param=name)
    return text
