"""Query parameters of a usage or costs page, parsed strictly: unknown names are refused.

Lists are repeated, as `models=a&models=b` or `models[]=a&models[]=b`, as OpenAI's clients send
them. A cursor names the bucket that its page begins with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.control.storable_text import PATTERN, check_storable
from gateway.errors import RequestError
from ledger.reports.usage_filters import UsageFilters

US_PER_S = 1_000_000
LONGEST_S = 2**40  # beyond it times do not fit the ledger's columns
CURSOR = "page_"
FILTERS = {  # parameter: what it is called in the ledger
    "project_ids": "teams",
    "api_key_ids": "keys",
    "user_ids": "users",
    "models": "models",
}
GROUPS = {
    "project_id": "team",
    "api_key_id": "key",
    "user_id": "user",
    "model": "model",
    "service_tier": "tier",
    "batch": "batch",
}
LINE_ITEM = "line_item"


@dataclass(frozen=True, slots=True)
class BucketWidth:
    seconds: int
    default: int  # buckets of a page
    most: int


@dataclass(frozen=True, slots=True)
class EndpointFilters:
    """The parameters of an endpoint; the first width is the default."""

    widths: Mapping[str, BucketWidth]
    filters: tuple[str, ...]
    groups: tuple[str, ...]
    line_items: bool = False
    batch: bool = False


@dataclass(frozen=True, slots=True)
class PageQuery:
    """One page: buckets of `width_s` from `start_s` to before `end_s`; `next_s` if more."""

    start_s: int
    end_s: int
    width_s: int
    next_s: int | None
    filters: UsageFilters
    groups: tuple[str, ...]
    line_items: tuple[str, ...]

    @property
    def buckets(self) -> list[tuple[int, int]]:
        """Return the buckets, aligned to the epoch; the query's times may cut first and last."""
        found = []
        start_s = self.start_s
        while start_s < self.end_s:
            end_s = min(self.end_s, start_s - start_s % self.width_s + self.width_s)
            found.append((start_s, end_s))
            start_s = end_s
        return found


def page_query(
    pairs: Sequence[tuple[str, str]], accepted: EndpointFilters, *, now_s: int, team: str | None
) -> PageQuery:
    """Parse `pairs` of a query; `team` limits the reader. Raises `RequestError` 400 or 403."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name.removesuffix("[]"), []).append(value)
    _refuse_unknown(values, accepted)
    start_s = _number(values, "start_time", None, least=0, most=LONGEST_S)
    end_s = _number(values, "end_time", now_s, least=0, most=LONGEST_S)
    if end_s <= start_s:
        raise _bad("end_time", "`end_time` must be after `start_time`.")
    width = _width(values, accepted)
    limit = _number(values, "limit", width.default, least=1, most=width.most)
    first_s = _cursor(values, start_s, end_s, width.seconds)
    last_s = first_s - first_s % width.seconds + limit * width.seconds
    filters = {FILTERS[name]: tuple(values.get(name, ())) for name in accepted.filters}
    if team is not None and any(each_team != team for each_team in filters["teams"]):
        message = f"This key may read the team `{team}` only."
        raise RequestError("forbidden", message, param="project_ids")
    return PageQuery(
        start_s=first_s,
        end_s=min(last_s, end_s),
        width_s=width.seconds,
        next_s=last_s if last_s < end_s else None,
        filters=UsageFilters(**filters, batch=_batch(values)),
        groups=_groups(values, accepted),
        line_items=tuple(values.get("line_items", ())),
    )


def cursor(start_s: int) -> str:
    return f"{CURSOR}{start_s}"


def parameters(accepted: EndpointFilters) -> list[dict[str, Any]]:
    """Return the parameters for OpenAPI."""
    number, text = {"type": "integer"}, {"type": "string"} | PATTERN
    singles: dict[str, dict[str, Any]] = {
        "start_time": number,
        "end_time": number,
        "bucket_width": {"type": "string", "enum": list(accepted.widths)},
        "limit": number,
        "page": text,
        **({"batch": {"type": "boolean"}} if accepted.batch else {}),
    }
    lists: dict[str, dict[str, Any]] = {
        **dict.fromkeys(accepted.filters, text),
        "group_by": {"type": "string", "enum": list(accepted.groups)},
        **({"line_items": text} if accepted.line_items else {}),
    }
    schemas = singles | {name: {"type": "array", "items": list_} for name, list_ in lists.items()}
    return [
        {"name": name, "in": "query", "required": name == "start_time", "schema": schema}
        for name, schema in schemas.items()
    ]


def _refuse_unknown(values: Mapping[str, Sequence[str]], accepted: EndpointFilters) -> None:
    known = {
        parameter["name"]: parameter["schema"]["type"] == "array"
        for parameter in parameters(accepted)
    }
    for name, each_value in values.items():
        if name not in known:
            raise _bad(name, f"`{name}` is unknown here; known are {', '.join(sorted(known))}.")
        if len(each_value) > 1 and not known[name]:
            raise _bad(name, f"`{name}` is given more than once. Send it once.")
        for value in each_value:
            check_storable(name, value)


def _number(
    values: Mapping[str, Sequence[str]], name: str, default: int | None, *, least: int, most: int
) -> int:
    text = values.get(name, [""])[0]
    if not text and default is not None:
        return default
    is_ = "must be" if text else "is required:"
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise _bad(name, f"`{name}` {is_} a whole number from {least} to {most}.")
    return int(text)


def _width(values: Mapping[str, Sequence[str]], accepted: EndpointFilters) -> BucketWidth:
    name = values.get("bucket_width", [next(iter(accepted.widths))])[0]
    if name not in accepted.widths:
        raise _bad("bucket_width", f"`bucket_width` must be one of {', '.join(accepted.widths)}.")
    return accepted.widths[name]


def _cursor(values: Mapping[str, Sequence[str]], start_s: int, end_s: int, width_s: int) -> int:
    text = values.get("page", [""])[0]
    if not text:
        return start_s
    digits = text.removeprefix(CURSOR)
    known = text != digits and digits.isascii() and digits.isdigit() and len(digits) < 20
    if not known or int(digits) % width_s or not start_s < int(digits) < end_s:
        raise _bad("page", "`page` must be the `next_page` of an answer to the same query.")
    return int(digits)


def _groups(values: Mapping[str, Sequence[str]], accepted: EndpointFilters) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(values.get("group_by", ())))
    for name in found:
        if name not in accepted.groups:
            known = ", ".join(accepted.groups)
            raise _bad("group_by", f"`group_by` cannot be `{name}`; known are {known}.")
    return found


def _batch(values: Mapping[str, Sequence[str]]) -> bool | None:
    text = values.get("batch", [""])[0].lower()
    if text not in {"", "true", "false"}:
        raise _bad("batch", "`batch` must be true or false.")
    return text == "true" if text else None


def _bad(param: str, message: str) -> RequestError:
    return RequestError("bad_request", message, param=param)
