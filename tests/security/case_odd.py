"""S7: a hostile hour at every route, with an administrator's key: odd bodies, queries and paths.

Whatever a route is asked, its answer is a refusal in words or a success, and never a failure of
ours (5xx), nor a connection that is cut. Queries never let anybody in, and paths lead nowhere
but where their guard stands.
"""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

from case import Case, CaseFigures, Given
from case_doors import raw_answer
from parts import Stack

import gateway.worker.app
from gateway.control.access import PUBLIC
from gateway.control.operations import ROUTES
from gateway.control.roles import ROLES, KeyRole

NAMES = (
    *(
        "name",
        "team",
        "org",
        "user",
        "scopes",
        "models",
        "key_id",
        "reason",
        "note",
        "pool",
        "rate",
    ),
    *("usd_per_hour", "from", "until", "target", "engine", "id", "text", "number", "document"),
    *("book", "currency", "day", "source", "provider", "project", "kind", "role", "residency"),
    *("expires", "tags", "route", "model", "until_us", "at", "who", "invoice", "lines", "file"),
    *("data", "content", "format", "policies", "hours", "seed", "spec"),
)
VALUES = (
    *('"\\ud800"', '"\\u0000"', "1e400", "-1", "9" * 30, "9" * 5000, "null", "[]", "{}", "true"),
    *('"=1+1"', "NaN", '"../../etc/passwd"', '"%00"', '"\\r\\nx: y"', f'"{"x" * 100_000}"'),
)
BODIES = (b"[" * 100_000, b'{"a":' * 100_000, b'{"name":"\xff"}', b"name=x", b"")
QUERIES = (
    *("start_time=999", f"start_time={'9' * 40}", "start_time=-1", "start_time=%00", "limit=-5"),
    *(f"limit={'9' * 30}", "page=%ed%a0%80", "group_by=%00", "group_by[]=x%0d%0ay", "team=%00"),
    *(f"project_ids[]={'x' * 5000}", "at=%ff%fe", f"number={'9' * 30}", f"page={'A' * 4000}"),
    *("start_time=1&end_time=2&bucket_width=%00", "after=%00", "name=%00", f"id={'9' * 30}"),
)
PATHS = (
    *("/v1/models/%00", "/v1/models/%ed%a0%80", f"/v1/models/{'a' * 7000}", "/v1/files/%00"),
    *("/v1/files/..%2f..%2f", "/v1/files/%ff/content", "/v1/batches/%00", "/V1/ORGANIZATION/KEYS"),
    *("/v1/organization/../organization/keys", "/v1/organization/keys/", "//v1/organization/keys"),
    *("/v1/organization/keys;x=1", "/v1/organization/keys%20", "/v1/organization/keys%2f"),
    *(
        "/v1/./organization/keys",
        "/v1/models/..%2forganization/keys",
        "/%2e%2e/v1/organization/keys",
    ),
)
IN_QUERIES = ("key", "api_key", "access_token", "token", "authorization")


def asked() -> Iterator[tuple[str, str, bytes]]:
    """Method, target and body of each."""
    for line in ROUTES:
        method, _, path = line.partition(" ")
        for name, value in (("{model:path}", "x"), ("{file_id}", "f"), ("{batch_id}", "b")):
            path = path.replace(name, value)
        if method == "GET":
            yield from (("GET", f"{path}?{query}", b"") for query in QUERIES)
        if method == "POST" and path.startswith("/v1/organization"):
            for value in VALUES:
                whole = "{" + ",".join(f'"{name}":{value}' for name in NAMES) + "}"
                yield from (("POST", path, text.encode()) for text in (whole, value))
            yield from (("POST", path, body) for body in BODIES)
    yield from (("GET", path, b"") for path in PATHS)


def failures(given: Given) -> CaseFigures:
    """Answers of 5xx, and none at all; doors that a path or a query opened are faults."""
    usual, loud = gateway.worker.app.cards, logging.root.manager.disable
    tried = list(asked())[:: 1 if given.full else 7]
    logging.disable(logging.CRITICAL)
    if given.broken:
        gateway.worker.app.cards = _defect
    try:
        with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), {}) as stack:
            key = stack.key("admin", scopes=tuple(sorted(ROLES[KeyRole.ADMIN]))).token
            answers = [raw_answer(stack, *item, key)[9:12] for item in tried]
            opened = list(_opened(stack, key))
    finally:
        gateway.worker.app.cards = usual
        logging.disable(loud)
    wrong = [
        item for item, status in zip(tried, answers, strict=True) if not b"200" <= status < b"500"
    ]
    first = (
        ": " + ", ".join(f"{method} {target}" for method, target, _ in wrong[:3]) if wrong else ""
    )
    return CaseFigures(len(wrong), f"{len(tried):,} requests{first}", tuple(opened))


def _opened(stack: Stack, key: str) -> Iterator[str]:
    """Without a header, or with a key of no role: nothing but a refusal, and no key in it."""
    guarded = "/v1/organization/keys"
    assert ROUTES[f"GET {guarded}"] != PUBLIC
    for name in IN_QUERIES:
        said = raw_answer(stack, "GET", f"{guarded}?{name}={key}", b"", None)
        if said[9:12] != b"401" or key.encode() in said:
            yield f"a key in a query, {name}: {said[9:12]!r}"
    for path in PATHS:
        for token in (None, stack.token):
            said = raw_answer(stack, "GET", path, b"", token)
            if b'"key_id"' in said or b'"keys"' in said:
                yield f"{path} leads to keys"


def _defect(*_: object) -> None:
    raise RuntimeError("planted")


CASES = (Case("S7", "odd requests that fail", failures, "one route has a defect"),)
