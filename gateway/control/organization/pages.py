"""Usage and costs in the form of OpenAI's organization endpoints, read from the ledger.

A project is a team. A key with the scope `usage` reads its own team; one with `usage:all` reads
every team, and also idle and unavailable GPU time. Tokens are those of all attempts; a request
counts once, whatever the number of attempts. Costs are exact, as in the ledger: API charges, and
GPU hours once they are closed.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI, Request, Response
from sqlalchemy import Connection

from gateway.auth import EVERY_TEAM, USAGE
from gateway.clock import Clock
from gateway.control.access import caller_of
from gateway.control.organization.query import (
    GROUPS,
    LINE_ITEM,
    US_PER_S,
    BucketWidth,
    EndpointFilters,
    PageQuery,
    cursor,
    page_query,
    parameters,
)
from gateway.control.organization.reads import LedgerReads
from gateway.errors import RequestError
from gateway.kinds import KINDS
from ledger.journals.token_kinds import MS_PER_S
from ledger.money import usd_exact
from ledger.spans import Scope
from router.request_kinds import RequestKind

if TYPE_CHECKING:  # reports are imported in the threads that make them, not at each start
    from ledger.reports.usage import CostCell, UsageCell

_WIDTHS = {
    "1d": BucketWidth(86_400, 7, 31),
    "1h": BucketWidth(3_600, 24, 168),
    "1m": BucketWidth(60, 60, 1_440),
}
_COMPLETIONS = EndpointFilters(
    _WIDTHS,
    ("project_ids", "user_ids", "api_key_ids", "models"),
    ("project_id", "user_id", "api_key_id", "model", "batch", "service_tier"),
    batch=True,
)
_OTHERS = EndpointFilters(
    _WIDTHS,
    ("project_ids", "user_ids", "api_key_ids", "models"),
    ("project_id", "user_id", "api_key_id", "model"),
)
_COSTS = EndpointFilters(
    {
        "1d": BucketWidth(86_400, 7, 180),
        "1h": BucketWidth(3_600, 24, 168),
    },  # GPUs are billed by the hour
    ("project_ids", "api_key_ids"),
    ("project_id", "line_item", "api_key_id", "user_id"),
    line_items=True,
)

Result = dict[str, Any]
Results = Callable[[Connection, Scope, PageQuery], list[tuple[int, Result]]]


@dataclass(frozen=True, slots=True)
class _Page:
    path: str
    summary: str
    accepted: EndpointFilters
    results: Results


def add_organization(app: FastAPI, reads: LedgerReads, clock: Clock) -> None:
    """Add the endpoints to the application, with their OpenAPI description."""
    for page in _PAGES:
        app.add_api_route(
            f"/v1/organization{page.path}",
            _endpoint(page, reads, clock),
            methods=["GET"],
            tags=["organization"],
            summary=page.summary,
            operation_id="organization" + page.path.replace("/", "_"),
            openapi_extra={"parameters": parameters(page.accepted)},
        )


def _endpoint(
    page: _Page, reads: LedgerReads, clock: Clock
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        identity, now_us = caller_of(request), clock.wall_us()
        team = None if USAGE + EVERY_TEAM in identity.scopes else identity.team_id
        pairs = request.query_params.multi_items()
        query = page_query(pairs, page.accepted, now_s=now_us // US_PER_S + 1, team=team)
        body = await reads.run(partial(_body, page, query, team))
        return Response(body, media_type="application/json")

    return answer


def _body(page: _Page, query: PageQuery, team: str | None, connection: Connection) -> bytes:
    """Return the encoded page; runs in a thread."""
    from ledger.reports.usage import TooManyCells  # noqa: PLC0415  (as said above)
    from ledger.seals.retirements import retired_until_us  # noqa: PLC0415  (as said above)

    scope = Scope(query.start_s * US_PER_S, query.end_s * US_PER_S, team)
    buckets: dict[int, list[Result]] = {start: [] for start, _ in query.buckets}
    if scope.start_us < (gone_us := retired_until_us(connection)):
        message = f"Single requests before {-(-gone_us // US_PER_S)} were retired: start there."
        raise RequestError("bad_request", message, param="start_time")
    try:
        found = page.results(connection, scope, query)
    except TooManyCells as error:
        message = "This answer is too large: ask for fewer buckets, or group by less."
        raise RequestError("bad_request", message, param="limit") from error
    for start_us, result in found:
        buckets[max(start_us // US_PER_S, query.start_s)].append(result)
    return msgspec.json.encode(
        {
            "object": "page",
            "data": [
                {
                    "object": "bucket",
                    "start_time": start,
                    "end_time": end,
                    "results": buckets[start],
                }
                for start, end in query.buckets
            ],
            "has_more": query.next_s is not None,
            "next_page": None if query.next_s is None else cursor(query.next_s),
        }
    )


def _usage(
    connection: Connection,
    scope: Scope,
    query: PageQuery,
    *,
    kinds: frozenset[RequestKind],
    shape: Callable[["UsageCell"], Result],
) -> list[tuple[int, Result]]:
    from ledger.reports.usage import usage_cells  # noqa: PLC0415  (as said above)

    by = [GROUPS[name] for name in query.groups]
    cells = usage_cells(
        connection, scope, query.filters, kinds=kinds, by=by, bucket_us=query.width_s * US_PER_S
    )
    return [
        (cell.start_us, {**shape(cell), **dict(zip(query.groups, cell.key, strict=True))})
        for cell in cells
    ]


def _completions(cell: "UsageCell") -> Result:
    fresh = cell.prompt_tokens - cell.cached_tokens - cell.cache_write_tokens
    return {
        "object": "organization.usage.completions.result",
        "input_tokens": cell.prompt_tokens,
        "input_cached_tokens": cell.cached_tokens,
        "input_cache_write_tokens": cell.cache_write_tokens,
        "input_uncached_tokens": fresh,
        "input_audio_tokens": cell.audio_input_tokens,
        "output_tokens": cell.output_tokens,
        "output_audio_tokens": cell.audio_output_tokens,
        "num_model_requests": cell.requests,
        **dict.fromkeys(_COMPLETIONS.groups),
    }


def _other(cell: "UsageCell", *, name: str, counted: str, count: Callable[..., int]) -> Result:
    """Return a result of a page with a single unit, which OpenAI calls `counted`."""
    return {
        "object": f"organization.usage.{name}.result",
        counted: count(cell),
        "num_model_requests": cell.requests,
        **dict.fromkeys(_OTHERS.groups),
    }


def _costs(connection: Connection, scope: Scope, query: PageQuery) -> list[tuple[int, Result]]:
    from ledger.reports.usage import cost_cells  # noqa: PLC0415  (as said above)

    grouped = [name for name in query.groups if name != LINE_ITEM]
    shown = LINE_ITEM in query.groups
    cells = cost_cells(
        connection,
        scope,
        query.filters,
        by=[GROUPS[name] for name in grouped],
        items=shown or bool(query.line_items),
        bucket_us=query.width_s * US_PER_S,
    )
    if query.line_items:
        cells = [cell for cell in cells if cell.item in query.line_items]
    if not shown:
        cells = _without_items(cells)
    return [
        (cell.start_us, {**_cost(cell), **dict(zip(grouped, cell.key, strict=True))})
        for cell in cells
    ]


def _without_items(cells: "list[CostCell]") -> "list[CostCell]":
    """Return cells summed over line items, for a filter by items without a group by items."""
    from ledger.reports.usage import CostCell  # noqa: PLC0415  (as said above)

    sums: dict[tuple[int, tuple[str | None, ...]], int] = {}
    for cell in cells:
        place = (cell.start_us, cell.key)
        sums[place] = sums.get(place, 0) + cell.pusd
    return [CostCell(*place, None, pusd, None, None) for place, pusd in sums.items()]


def _cost(cell: "CostCell") -> Result:
    """Return a cost result; the amount has all decimal places, which a float would lose."""
    from ledger.reports.usage import HOURS  # noqa: PLC0415  (as said above)

    value = msgspec.Raw(usd_exact(cell.pusd).encode())
    return {
        "object": "organization.costs.result",
        "amount": {"value": value, "currency": "usd"},
        **dict.fromkeys(_COSTS.groups),
        LINE_ITEM: cell.item,
        "quantity": cell.quantity,
        "quantity_unit": "duration_hours" if cell.unit == HOURS else cell.unit,
    }


# Pages of a single unit: title, the unit's name, and its amount in a cell.
_UNITS: Mapping[str, tuple[str, str, Callable[["UsageCell"], int]]] = {
    "embeddings": ("Tokens embedded", "input_tokens", lambda cell: cell.prompt_tokens),
    "moderations": ("Tokens judged", "input_tokens", lambda cell: cell.prompt_tokens),
    "images": ("Pictures made", "images", lambda cell: cell.pictures),
    "audio_speeches": ("Characters spoken", "characters", lambda cell: cell.characters),
    "audio_transcriptions": (
        "Seconds of sound transcribed", "seconds", lambda cell: -(-cell.audio_ms // MS_PER_S)
    ),
}  # fmt: skip
_CHAT = "/usage/completions"


def _counted(page: str, shape: Callable[..., Any]) -> partial[Any]:
    """Return the result function of a usage page: all requests of its kinds."""
    kinds = frozenset(kind for kind, spec in KINDS.items() if spec.usage_page == page)
    return partial(_usage, kinds=kinds, shape=shape)


_PAGES = (
    _Page(_CHAT, "Tokens and requests", _COMPLETIONS, _counted(_CHAT, _completions)),
    *(
        _Page(
            f"/usage/{name}",
            title,
            _OTHERS,
            _counted(f"/usage/{name}", partial(_other, name=name, counted=unit, count=count)),
        )
        for name, (title, unit, count) in _UNITS.items()
    ),
    _Page("/costs", "What it cost, to the pico-dollar", _COSTS, _costs),
)
