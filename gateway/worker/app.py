"""ASGI application: FastAPI, with the inference paths answered in front of it.

FastAPI serves the small endpoints (models, usage, health, metrics, docs) and the OpenAPI document.
The inference paths (`gateway.request.inference_api.HOT`) go to `gateway.request.inference_api`. For
all other paths, repeated and trailing slashes are removed where every path needs a key, so that no
path rule of a proxy is bypassed. HEAD is answered as GET without a body. Clients of Anthropic's API
get errors in its format.
"""

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import Engine
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from backends.secret import Secret
from gateway.batches.line_endpoint import LineEndpoint
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.access import caller_of
from gateway.control.organization.pages import add_organization
from gateway.control.organization.reads import LedgerReads
from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.logs import REQUEST
from gateway.request.client_paths import DEPLOYMENT, canonical_path
from gateway.request.dialects.messages import MESSAGES
from gateway.request.inference_api import (
    InferenceApi,
    Message,
    Receive,
    SendMessage,
    is_hot,
)
from gateway.request.model_catalog import ModelCatalog
from gateway.request.model_list import (
    ModelPage,
    anthropic_card,
    anthropic_cards,
    is_usable,
    usable_models,
)
from gateway.request.model_retirement import find_retirement, served_models
from gateway.request.request_endings import CHALLENGE, waits_to_send
from gateway.request.shutdown_response import serve_with_shutdown_response
from gateway.request.sockets.responses_sockets import ResponsesSockets
from gateway.worker.openapi import POLICY, describe_api, page
from gateway.worker.unserved_paths import (
    reason_of_method,
    reason_unserved,
    unknown_path_text,
)
from ledger.identity.keys import Identity

Ready = Callable[[], list[str]]
Lifespan = Callable[["Gateway"], AbstractAsyncContextManager[None]]

REQUEST_ID = "breakeven.request_id"
ANTHROPIC = "/v1/messages"
VERSION = "anthropic-version"
METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
WELCOME = {  # answer of `GET /`; without a key, it names no version or model
    "message": "This is Breakeven, a gateway to language models. Its API is OpenAI's, under /v1, "
    "and needs a key; /docs describes it.",
    "api": "/v1",
    "docs": "/docs",
    "openapi": "/openapi.json",
}
SERVER = b"*"  # target of `OPTIONS *`
_KEYED = ("/v1/", "/v2/", "/openai/")  # every path below these needs a key
_SLASHES = re.compile("//+")

log = logging.getLogger("breakeven.app")


class Gateway(FastAPI):
    """The application of a worker. Its creator attaches `hot`, `catalog` and `sockets`.

    `hot` may be replaced during startup, because it needs the running loop. `origins` and `max_n`
    are as in `server`. `message_bytes` is the maximum size of a WebSocket message. `described`
    returns additional routes for the OpenAPI document.
    """

    hot: InferenceApi
    catalog: ModelCatalog
    sockets: ResponsesSockets
    message_bytes: int
    origins: tuple[str, ...] = ()
    max_n: int
    entrance: LineEndpoint | None = None
    described: Callable[[], Sequence[BaseRoute]] = tuple
    secrets: tuple[Secret, ...] = ()  # secrets sent to targets, hidden in logs

    async def __call__(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        if is_hot(scope):
            await self.hot(scope, receive, send)
        elif scope["type"] == "http":
            ticket = None if self.entrance is None else self.entrance.ticket_of(scope)
            if ticket is not None and self.entrance is not None:
                await self.entrance(ticket, scope, receive, send)
            else:
                await self._elsewhere(scope, receive, send)
        elif scope["type"] == "websocket":
            await self.sockets(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def _elsewhere(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        if scope["method"] == "OPTIONS" and scope["raw_path"] == SERVER:
            await _of_server(send, self.hot.new_id())
            return
        path = _straight(scope["path"])
        other = canonical_path(path)
        if other is not None:
            path = other.path
        if path != scope["path"]:
            scope = {**scope, "path": path, "raw_path": path.encode("utf-8", "replace")}
            if other is not None and other.model is not None:
                scope[DEPLOYMENT] = other.model
            if is_hot(scope):
                await self.hot(scope, receive, send)
                return
        request_id = self.hot.new_id()
        REQUEST.set(request_id)
        answer = TaggedResponse(send, scope, request_id)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        named, serve = {**scope, "method": method, REQUEST_ID: request_id}, super().__call__
        try:
            await serve_with_shutdown_response(
                lambda send: serve(named, receive, send), answer, lambda: self.hot.draining
            )
        except Exception:  # raised again after `_on_defect` has answered
            if not answer.ended:
                raise  # cut off an incomplete answer, so that it is not taken for complete
            log.exception("request failed request=%s", request_id)

    def add_router(self, router: APIRouter) -> None:
        """Add the routes of a router; each route must check access itself."""
        self.router.routes.extend(router.routes)

    def add_batches(self, routers: Iterable[APIRouter], entrance: LineEndpoint | None) -> None:
        """Serve the routes of batches, and accept batch lines at `entrance`."""
        for router in routers:
            self.add_router(router)
        self.entrance = entrance

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            routes = [*self.routes, *self.described()]
            document = get_openapi(title=self.title, version=self.version, routes=routes)
            self.openapi_schema = describe_api(document, self.max_n)
        return self.openapi_schema


@dataclass(frozen=True, slots=True)
class Operations:
    """Renderer of `/metrics`, and the readiness check: names of missing parts, empty if ready."""

    exposition: Callable[[], bytes]
    ready: Ready


def create_app(
    settings: Settings,
    operations: Operations,
    clock: Clock,
    lifespan: Lifespan,
    reader: Engine,
) -> Gateway:
    """Create the application; the caller attaches `hot`."""
    reads = LedgerReads(reader)

    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        assert isinstance(app, Gateway)
        async with lifespan(app):
            yield
        reads.close()

    # FastAPI's viewers load scripts from a CDN, so /docs is our own page.
    app = Gateway(
        title="Breakeven", version="1", lifespan=run, redirect_slashes=False,
        docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.origins, app.max_n = settings.server.cors_origins, settings.server.max_n
    app.message_bytes = settings.server.body_limit_bytes

    @app.get("/", include_in_schema=False)
    async def welcome() -> dict[str, str]:
        return WELCOME

    @app.get("/healthz", tags=["operations"], summary="The process answers")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/health", include_in_schema=False)  # for clients that treat the gateway as an engine
    @app.get("/readyz", tags=["operations"], summary="Requests can be served and recorded")
    async def readyz() -> JSONResponse:
        missing = operations.ready()
        status = {"status": "unready" if missing else "ready", "missing": missing}
        return JSONResponse(status, status_code=503 if missing else 200)

    @app.get("/metrics", tags=["operations"], summary="Prometheus exposition of all workers")
    async def metrics() -> Response:
        return Response(operations.exposition(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {"content-security-policy": POLICY}
        return Response(page(app.openapi()), media_type="text/html", headers=headers)

    _add_models(app, settings, clock)
    add_organization(app, reads, clock)
    app.add_exception_handler(RequestError, _on_request_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_defect)
    return app


def _add_models(app: Gateway, settings: Settings, clock: Clock) -> None:
    started_s = clock.wall_us() // 1_000_000

    def listed(identity: Identity) -> list[str]:
        return served_models(settings, usable_models(settings, identity), clock.wall_us())

    @app.get("/v1/models", tags=["inference"], summary="The logical models this key may use")
    async def models(
        request: Request,
        limit: Annotated[int | None, Query(ge=1, le=1000)] = None,
        after_id: str | None = None,
        before_id: str | None = None,
    ) -> dict[str, Any]:
        identity = caller_of(request)
        names = listed(identity)
        if _is_anthropics(request):
            page = ModelPage(limit, after_id, before_id)
            limits_of = partial(app.catalog.limits, identity=identity)
            return anthropic_cards(names, started_s, page, limits_of)
        return app.catalog.cards(names, started_s, identity)

    @app.get("/v1/models/{model:path}", tags=["inference"], summary="One logical model")
    async def model(model: str, request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        if not is_usable(settings, identity, model):
            raise RequestError(
                "no_model",
                f"The model `{model}` does not exist. `GET /v1/models` lists all models of "
                "this key.",
                param="model",
            )
        retirement = find_retirement(settings, model)
        if retirement is not None:
            retirement.check_served(clock.wall_us())
        if _is_anthropics(request):
            return anthropic_card(model, started_s, app.catalog.limits(model, identity))
        return app.catalog.card(model, started_s, identity)

    @app.get("/model/info", include_in_schema=False)
    @app.get("/v1/model/info", tags=["inference"], summary="The same in LiteLLM's shape")
    async def model_info(request: Request) -> dict[str, Any]:
        identity = caller_of(request)
        return app.catalog.model_info(listed(identity), identity)


def _straight(path: str) -> str:
    """Remove repeated and trailing slashes from paths that need a key."""
    found = _SLASHES.sub("/", path)
    bare = found.rstrip("/")
    keyed = found.startswith(_KEYED) and found not in _KEYED
    return bare if keyed or canonical_path(bare) is not None else path


async def _of_server(send: SendMessage, request_id: str) -> None:
    """Answer `OPTIONS *` for the server as a whole."""
    headers = [
        (b"allow", ", ".join(sorted((*METHODS, "HEAD", "OPTIONS"))).encode()),
        (b"x-request-id", request_id.encode()),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class TaggedResponse:
    """Sender that adds `x-request-id` to a response, and omits the body of a HEAD response."""

    def __init__(self, send: SendMessage, scope: Message, request_id: str) -> None:
        self.ended = False
        self._send = send
        self._is_head = scope["method"] == "HEAD"
        self._added = [(b"x-request-id", request_id.encode())]
        if waits_to_send(scope):  # these routes read no body
            self._added.append((b"connection", b"close"))

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *self._added]}
        elif self._is_head:
            message = {**message, "body": b""}
        await self._send(message)
        self.ended = message["type"] == "http.response.body" and not message.get("more_body", False)


async def _on_request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _error_response(request, error, {})


async def _on_validation_error(request: Request, error: Exception) -> Response:
    """Return a 400 that names the invalid query parameter."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    told = RequestError("bad_request", f"`{name}`: {first['msg']}.", param=name)
    return await _on_request_error(request, told)


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Return Starlette's errors (unknown path, wrong method) in the API's error format."""
    assert isinstance(error, HTTPException)
    kind = "method" if error.status_code == 405 else "no_route"
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == 405:
        headers["allow"] = ", ".join(_allowed_methods(request))
    path = request.url.path
    reason = reason_unserved(path)
    if reason is not None:
        return _error_response(request, RequestError("not_served", reason, retry=False), headers)
    why = reason_of_method(request.method, path)
    if why is None and kind == "no_route":
        why = unknown_path_text(request.method, path)
    told = RequestError(kind, why or f"{request.method} {path}: {error.detail}.")
    return _error_response(request, told, headers)


async def _on_defect(request: Request, _: Exception) -> Response:
    """Return a 500 for an unexpected error; the application raises it again to log it."""
    told = RequestError(
        "internal", "The gateway failed. Report `x-request-id`: the cause is in its log."
    )
    return await _on_request_error(request, told)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes with this path; Starlette names only the first route's."""
    routes, found = request.app.routes, set()
    for method in METHODS:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in routes):
            found.add(method)
    return sorted(found | {"HEAD"} if "GET" in found else found)


def _error_response(request: Request, error: RequestError, headers: dict[str, str]) -> Response:
    text, status = error_body(error), error.row.status
    if _is_anthropics(request):
        text = MESSAGES.translate_error(text, status, request.scope[REQUEST_ID])
        headers["request-id"] = request.scope[REQUEST_ID]
    if status == 401:
        headers |= {name.decode(): value.decode() for name, value in (CHALLENGE,)}
    headers["x-breakeven-fault"] = error.fault.value
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, ceil(error.retry_after_s)))
    if error.retry is not None:
        headers["x-should-retry"] = "true" if error.retry else "false"
    return Response(text, status, media_type="application/json", headers=headers)


def _is_anthropics(request: Request) -> bool:
    """Return whether the client uses Anthropic's API, by its path or `anthropic-version`."""
    path = request.url.path
    return path == ANTHROPIC or path.startswith(ANTHROPIC + "/") or VERSION in request.headers
