"""Routes of stored answers on a host that stores none: each one returns an error.

The error says what to send instead.
"""

from typing import Final

from fastapi import APIRouter

from gateway.errors import RequestError

_REASON: Final = (
    "Answers are not kept here (`store.enabled: false` in the gateway's configuration). Send "
    "`store: false` and the whole conversation with each request to `/v1/responses` or "
    "`/v1/chat/completions`."
)
_RESPONSE: Final = "/v1/responses/{response_id}"
_COMPLETIONS: Final = "/v1/chat/completions"
_COMPLETION: Final = _COMPLETIONS + "/{completion_id}"
_CONVERSATION: Final = "/v1/conversations/{conversation_id}"
_ITEMS: Final = _CONVERSATION + "/items"
_ROUTES: Final = (
    *((method, _RESPONSE) for method in ("GET", "DELETE")),
    ("POST", _RESPONSE + "/cancel"),
    ("GET", _RESPONSE + "/input_items"),
    ("GET", _COMPLETIONS),
    *((method, _COMPLETION) for method in ("GET", "POST", "DELETE")),
    ("GET", _COMPLETION + "/messages"),
    ("POST", "/v1/conversations"),
    *((method, _CONVERSATION) for method in ("GET", "POST", "DELETE")),
    *((method, _ITEMS) for method in ("GET", "POST")),
    *((method, _ITEMS + "/{item_id}") for method in ("GET", "DELETE")),
)


def not_stored_router() -> APIRouter:
    """Return routes that refuse every request.

    A client that creates a conversation first gets the error before its first turn.
    """
    router = APIRouter(include_in_schema=False)
    for method, path in _ROUTES:
        router.add_api_route(path, _refuse, methods=[method])
    return router


async def _refuse() -> None:
    raise RequestError("not_served", _REASON, retry=False)
