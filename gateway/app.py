"""The ASGI root: a FastAPI application whose hot `/v1` paths are answered in front of it.

FastAPI serves the small endpoints (models, health, metrics, docs) and describes everything in its
OpenAPI; the paths that models answer (`gateway.api.HOT`) go to `gateway.api`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from gateway.api import HotApi, Message, Receive, SendMessage, is_hot
from gateway.auth import INFERENCE, authenticate, token_of
from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.openapi import POLICY, described, page
from gateway.plan import allowed
from gateway.settings import Model, Settings, resolve_model
from ledger.identity import Identity, KeyRing

Lifespan = Callable[["Gateway"], AbstractAsyncContextManager[None]]


class Gateway(FastAPI):
    """`hot` may be replaced while the application starts (it needs the running loop)."""

    hot: HotApi

    async def __call__(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        if is_hot(scope):
            await self.hot(scope, receive, send)
        elif scope["type"] == "http":
            await super().__call__(scope, receive, _identified(send, self.hot.new_id()))
        else:
            await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = described(super().openapi())
        return self.openapi_schema


@dataclass(frozen=True, slots=True)
class Operations:
    """`exposition` renders /metrics; `ready` names what is missing for readiness (empty: ready)."""

    exposition: Callable[[], bytes]
    ready: Callable[[], list[str]]


def create_app(
    settings: Settings,
    keys: KeyRing,
    operations: Operations,
    clock: Clock,
    lifespan: Lifespan,
) -> Gateway:
    """The application without its hot half, which the caller attaches as `hot`."""
    started_s = clock.wall_us() // 1_000_000

    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        assert isinstance(app, Gateway)
        async with lifespan(app):
            yield

    # FastAPI's own viewers load their scripts from elsewhere: /docs is a page of ours.
    app = Gateway(
        title="Breakeven", version="1", lifespan=run, redirect_slashes=False,
        docs_url=None, redoc_url=None,
    )  # fmt: skip

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", tags=["operations"], summary="The process answers")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", tags=["operations"], summary="Requests can be served and recorded")
    async def readyz() -> JSONResponse:
        missing = operations.ready()
        status = {"status": "unready" if missing else "ready", "missing": missing}
        return JSONResponse(status, status_code=503 if missing else 200)

    @app.head("/metrics", include_in_schema=False)
    @app.get("/metrics", tags=["operations"], summary="Prometheus exposition of all workers")
    async def metrics() -> Response:
        return Response(operations.exposition(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {"content-security-policy": POLICY}
        return Response(page(app.openapi()), media_type="text/html", headers=headers)

    @app.get("/v1/models", tags=["inference"], summary="The logical models this key may use")
    async def models(request: Request) -> dict[str, Any]:
        identity = await _identity(request, keys, clock.wall_us())
        names = [name for name in settings.models if _usable(settings, identity, name)]
        return {"object": "list", "data": [_card(name, started_s) for name in names]}

    @app.get("/v1/models/{model:path}", tags=["inference"], summary="One logical model")
    async def model(model: str, request: Request) -> dict[str, Any]:
        identity = await _identity(request, keys, clock.wall_us())
        if not _usable(settings, identity, model):
            raise RequestError("no_model", f"The model `{model}` does not exist.", param="model")
        return _card(model, started_s)

    app.add_exception_handler(RequestError, _on_request_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    return app


def _identified(send: SendMessage, request_id: str) -> SendMessage:
    """Every answer names its request, so that a client can ask about it."""

    async def identified(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            message = {**message, "headers": headers}
        await send(message)

    return identified


async def _identity(request: Request, keys: KeyRing, now_us: int) -> Identity:
    token = token_of(request.scope["headers"])
    return await authenticate(keys, token, now_us=now_us, scope=INFERENCE)


def _usable(settings: Settings, identity: Identity, name: str) -> bool:
    """What a request with this name is asked too; a pattern (`openai/*`) stands for its names."""
    found = resolve_model(settings, name)
    resolved = name if found is None else found[0]
    known = found is not None or name in settings.models
    if not known or not allowed(identity.models, name, resolved):
        return False
    model = None if found is None else found[1]
    confined = identity.residency == "internal_only"
    return not confined or (model is not None and _has_own(model))


def _has_own(model: Model) -> bool:
    return any(target.startswith("pool:") for target in model.targets)


def _card(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "breakeven"}


async def _on_request_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return Response(error_body(error), error.row.status, media_type="application/json")


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (unknown path, wrong method) in the same shape."""
    assert isinstance(error, HTTPException)
    kind = "method" if error.status_code == 405 else "no_route"
    told = RequestError(kind, f"{request.method} {request.url.path}: {error.detail}.")
    return Response(
        error_body(told), told.row.status, media_type="application/json", headers=error.headers
    )
