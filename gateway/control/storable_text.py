"""Texts in queries: PostgreSQL cannot store the character zero and fails over one.

Such a text names nothing that could be found. Told as a fault of the request, before anybody is
asked; a database's failure would say "come back later" of what can never be answered.
"""

from typing import Annotated, Any

from fastapi import Query

from gateway.errors import RequestError

PATTERN: dict[str, Any] = {"pattern": r"^[^\x00]*$"}  # the same, in OpenAPI
Text = Annotated[str | None, Query(json_schema_extra=PATTERN)]


def check_storable(name: str, text: str | None) -> str | None:
    """The text of the parameter `name` as it came. Raises `RequestError` 400."""
    if text is not None and "\0" in text:
        message = f"`{name}` has a zero character. Leave it out."
        raise RequestError("bad_request", message, param=name)
    return text
