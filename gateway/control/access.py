"""Access rules of all HTTP routes in one table; a route without an entry is not served.

Entries of operations are in `gateway.control.operations`, those of all other routes here.
`guard_routes` wraps each route object with its rule, and refuses to start if a route has no entry
or an entry has no route. The rule belongs to the route that answers, so no second match of the path
can differ from it. `caller_of` returns the caller that the guard admitted. Batch lines are sent to
`/batch-lines`, which is no route: requests without a ticket of this host's batch runner get "not
found" (`gateway.batches.line_endpoint`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.auth import INFERENCE, PERSON, USAGE, KeyLookup, identify_token, permit, token_of
from gateway.clock import Clock
from gateway.control.people import SignedInPeople, verify_body
from gateway.request.inference_api import HOT
from ledger.identity.keys import Identity

PUBLIC = "public"
CALLER = "breakeven.caller"
_FOR = "/v1/organization"

OTHER_ROUTES: dict[str, str] = {
    "GET /": PUBLIC,
    "GET /health": PUBLIC,
    "GET /healthz": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /metrics": PUBLIC,
    "GET /docs": PUBLIC,
    "GET /openapi.json": PUBLIC,
    **{f"POST {path}": INFERENCE for path in sorted(HOT)},
    "GET /v1/responses/{response_id}": INFERENCE,
    "DELETE /v1/responses/{response_id}": INFERENCE,
    "POST /v1/responses/{response_id}/cancel": INFERENCE,
    "GET /v1/responses/{response_id}/input_items": INFERENCE,
    "GET /v1/chat/completions": INFERENCE,
    "GET /v1/chat/completions/{completion_id}": INFERENCE,
    "POST /v1/chat/completions/{completion_id}": INFERENCE,
    "DELETE /v1/chat/completions/{completion_id}": INFERENCE,
    "GET /v1/chat/completions/{completion_id}/messages": INFERENCE,
    "POST /v1/conversations": INFERENCE,
    "GET /v1/conversations/{conversation_id}": INFERENCE,
    "POST /v1/conversations/{conversation_id}": INFERENCE,
    "DELETE /v1/conversations/{conversation_id}": INFERENCE,
    "GET /v1/conversations/{conversation_id}/items": INFERENCE,
    "POST /v1/conversations/{conversation_id}/items": INFERENCE,
    "GET /v1/conversations/{conversation_id}/items/{item_id}": INFERENCE,
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": INFERENCE,
    "GET /v1/models": INFERENCE,
    "GET /v1/models/{model:path}": INFERENCE,
    "GET /model/info": INFERENCE,
    "GET /v1/model/info": INFERENCE,
    "GET /v1/files": INFERENCE,
    "POST /v1/files": INFERENCE,
    "GET /v1/files/{file_id}": INFERENCE,
    "GET /v1/files/{file_id}/content": INFERENCE,
    "DELETE /v1/files/{file_id}": INFERENCE,
    "GET /v1/batches": INFERENCE,
    "POST /v1/batches": INFERENCE,
    "GET /v1/batches/{batch_id}": INFERENCE,
    "POST /v1/batches/{batch_id}/cancel": INFERENCE,
    "GET /v1/messages/batches": INFERENCE,
    "POST /v1/messages/batches": INFERENCE,
    "GET /v1/messages/batches/{batch_id}": INFERENCE,
    "DELETE /v1/messages/batches/{batch_id}": INFERENCE,
    "GET /v1/messages/batches/{batch_id}/results": INFERENCE,
    "POST /v1/messages/batches/{batch_id}/cancel": INFERENCE,
    f"GET {_FOR}/usage/completions": USAGE,
    f"GET {_FOR}/usage/embeddings": USAGE,
    f"GET {_FOR}/usage/moderations": USAGE,
    f"GET {_FOR}/usage/images": USAGE,
    f"GET {_FOR}/usage/audio_speeches": USAGE,
    f"GET {_FOR}/usage/audio_transcriptions": USAGE,
    f"GET {_FOR}/costs": USAGE,
}
# These exist only if batches and stored answers are enabled.
_OPTIONAL = (
    "/v1/files", "/v1/batches", "/v1/messages/batches", "/v1/responses/", "/v1/chat/completions",
    "/v1/conversations",
)  # fmt: skip


class AccessError(Exception):
    """A route without an access rule, or a rule without its route."""


class RouteAccess(NamedTuple):
    """Callers of a route: holders of keys, and people (`None`: no people)."""

    keys: KeyLookup
    people: SignedInPeople | None = None


class RouteGuard:
    """ASGI middleware of one route that rejects callers without its scope."""

    def __init__(self, app: ASGIApp, scope: str, known: RouteAccess, clock: Clock) -> None:
        self.scope = scope
        self._app = app
        self._known = known
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        now_us, people = self._clock.wall_us(), self._known.people
        vouched = None if people is None else people.vouched_header(scope)
        if people is not None and vouched is not None:
            identity, word = people.identity(vouched, scope, now_us)
            receive, who = verify_body(receive, word.body), "An open dashboard"
        else:
            token, who = token_of(scope["headers"]), "This key"
            if people is not None and people.is_sign_in_token(token):
                identity = await people.sign_in(token, now_us)
            else:
                identity = await identify_token(self._known.keys, token, now_us=now_us)
        person = identity.user_id if identity.key_id == PERSON else None
        permit(identity, self.scope, person or who)
        scope[CALLER] = identity
        await self._app(scope, receive, send)


def guard_routes(
    app: FastAPI,
    keys: KeyLookup,
    clock: Clock,
    table: Mapping[str, str],
    people: SignedInPeople | None = None,
) -> None:
    """Wrap all routes once, after all are added. Raises `AccessError` with every fault."""
    found = dict(list_operations(app))
    faults = [f"{name} does not say who may call it" for name in found if name not in table]
    faults += [
        f"{name} is not a route"
        for name in table
        if name not in found and not name.partition(" ")[2].startswith(_OPTIONAL)
    ]
    hot = {f"POST {path}" for path in HOT}
    faults += [f"{name} is for `{INFERENCE}`" for name in hot if table.get(name) != INFERENCE]
    if faults:
        raise AccessError("\n".join(sorted(faults)))
    for name, route in found.items():
        if isinstance(route, Route) and table[name] != PUBLIC:
            route.app = RouteGuard(route.app, table[name], RouteAccess(keys, people), clock)


def list_operations(app: FastAPI) -> Iterator[tuple[str, Any]]:
    """Yield every route as `METHOD /path`, including the inference paths."""
    for path in HOT:
        yield f"POST {path}", None
    for route in app.router.routes:
        yield from _named_routes(route)


def caller_of(request: Request) -> Identity:
    """Return the caller that the access check admitted."""
    found: Identity = request.scope[CALLER]
    return found


def _named_routes(route: BaseRoute) -> Iterator[tuple[str, BaseRoute]]:
    """Yield a route with its name. A route must have one method, because rules are by method."""
    if not isinstance(route, Route):
        raise AccessError(f"{route} is no single route: its paths have no lines")
    methods = sorted((route.methods or set()) - {"HEAD"})
    if len(methods) != 1:
        raise AccessError(f"{route.path} answers {', '.join(methods)}: one method a route")
    yield f"{methods[0]} {route.path}", route
